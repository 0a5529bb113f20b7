//! Copies of devices' nodes for a guest.

use alloc::format;
use alloc::vec::Vec;

use super::GivenDevices;
use super::depend::{PropertyKind, fixed_rate, kind, references};
use crate::Range;
use crate::devices::is_coherent;
use crate::interrupt_parent::InterruptParent;
use crate::tree::{Node, Tree};
use crate::writer::TreeWriter;

/// Interrupt flags of the binding: a high level, for a controller of the board that distinguishes no modes.
const LEVEL_HIGH: u32 = 4;

impl<'t> GivenDevices<'t> {
    /// Writes the devices' nodes for a guest, below a bus with two cells an address and two a size whose addresses are the computer's: those that are
    /// confined, with the handle of the controller that takes their messages, if one does; or the others, which are told where memory lies for devices.
    /// `first` is the first handle that is free in the guest's tree.
    pub(crate) fn write(
        &self,
        fdt: &mut TreeWriter,
        wires: InterruptParent,
        first: u32,
        confined: Option<u32>,
    ) {
        let Some(tree) = self.tree else {
            return;
        };
        let copy = Copy {
            tree,
            given: self,
            wires,
            first,
            messages: confined.filter(|_| self.sends_messages),
        };
        let devices = self.devices.iter();
        let devices = devices.filter(|place| self.confined.contains(place) == confined.is_some());
        for node in devices.filter_map(|place| tree.at(*place)) {
            copy.device(fdt, node, true);
        }
    }

    /// Writes the fixed clocks and regulators that the devices depend on.
    pub(crate) fn write_supplies(&self, fdt: &mut TreeWriter, first: u32) {
        let Some(tree) = self.tree else {
            return;
        };
        for (node, handle) in self.copies.iter().zip(first..) {
            let Some(node) = tree.at(*node) else {
                continue;
            };
            let rate = fixed_rate(tree, node);
            let kind = if rate.is_some() { "clock" } else { "regulator" };
            fdt.begin_node(&format!("{kind}-{handle}"));
            if let Some(rate) = rate {
                fdt.property_string("compatible", "fixed-clock");
                fdt.property_u32("#clock-cells", 0);
                fdt.property_u32("clock-frequency", rate);
            }
            for (name, value) in node.properties() {
                let is_kept = match rate {
                    Some(_) => name == "clock-output-names",
                    None => matches!(super::depend::kind(tree, name, value), PropertyKind::Plain),
                };
                if is_kept {
                    fdt.property(name, value);
                }
            }
            fdt.property_phandle(handle);
            fdt.end_node();
        }
    }
}

/// A copy that is being written.
struct Copy<'c, 't> {
    tree: &'t Tree<'t>,
    given: &'c GivenDevices<'t>,
    wires: InterruptParent,
    first: u32,
    /// The controller that takes messages.
    messages: Option<u32>,
}

impl<'t> Copy<'_, 't> {
    /// The handle of a node in the guest's tree: those of copied supplies come first, then those of all nodes of the board's tree.
    fn handle(&self, node: Node<'_, '_>) -> u32 {
        let place = node.place();
        let mut copies = self.given.copies.iter();
        let number = match copies.position(|copy| *copy == place) {
            Some(number) => number,
            None => self.given.copies.len() + place,
        };
        self.first.saturating_add(number as u32)
    }

    fn device(&self, fdt: &mut TreeWriter, node: Node<'t, 't>, is_top: bool) {
        fdt.begin_node(node.name());
        let on_pci = node.is_on_pci();
        let registers = node.registers();
        if !registers.is_empty() && !on_pci {
            let pairs = registers.iter().flat_map(|range| [range.start, range.size]);
            let pairs: Vec<u64> = pairs.collect();
            fdt.property_array_u64("reg", &pairs);
        } else if let Some(value) = node.property("reg") {
            fdt.property("reg", value);
        }
        // Addresses below it are written as the computer's, those of PCI as they are.
        let is_bus = node.has("ranges") && !on_pci && !node.is_pci_bridge();
        if is_bus {
            fdt.property_null("ranges");
            fdt.property_u32("#address-cells", 2);
            fdt.property_u32("#size-cells", 2);
        }
        if is_top && !is_coherent(node) {
            fdt.property_null("dma-noncoherent");
        }
        if on_pci && let Some(value) = node.property("ranges") {
            fdt.property("ranges", value);
        } else if node.is_pci_bridge() {
            windows(fdt, node);
            if let Some(controller) = self.messages {
                fdt.property_u32("msi-parent", controller);
            }
        }
        self.interrupts(fdt, node);
        self.interrupt_map(fdt, node);
        for (name, value) in node.properties() {
            let is_written = is_bus && matches!(name, "#address-cells" | "#size-cells")
                || is_top && name == "dma-noncoherent";
            if is_written {
                continue;
            }
            match kind(self.tree, name, value) {
                PropertyKind::Plain => {
                    fdt.property(name, value);
                }
                PropertyKind::References(cells) => self.references(fdt, name, (value, cells)),
                PropertyKind::LeftOut if name == "status" && !is_top => {
                    fdt.property(name, value);
                }
                PropertyKind::LeftOut => {}
            }
        }
        if node.has("phandle") {
            fdt.property_phandle(self.handle(node));
        }
        for child in node.children() {
            self.device(fdt, child, false);
        }
        fdt.end_node();
    }

    fn references(&self, fdt: &mut TreeWriter, name: &str, (value, cells): (&[u8], &str)) {
        let mut words = Vec::new();
        references(self.tree, (value, cells), &mut |node, word| {
            words.push(node.map_or(word, |node| self.handle(node)));
        });
        fdt.property_array_u32(name, &words);
    }

    /// Tests whether a node is one of the VM's devices, or lies below one.
    fn is_inside(&self, node: Node<'_, '_>) -> bool {
        let mut tops = self.given.devices.iter();
        tops.any(|top| self.tree.at(*top).is_some_and(|top| node.is_in(top)))
    }

    fn interrupt_map(&self, fdt: &mut TreeWriter, node: Node<'t, 't>) {
        let mut words = Vec::new();
        for entry in node.interrupt_map() {
            words.extend(entry.device);
            match entry.parent.filter(|parent| self.is_inside(*parent)) {
                Some(parent) => {
                    words.push(self.handle(parent));
                    words.extend(entry.address);
                    words.extend(entry.cells);
                }
                // The guest's controllers have no addresses.
                None => words.extend(self.specifier(&entry.cells)),
            }
        }
        if !words.is_empty() {
            fdt.property_array_u32("interrupt-map", &words);
        }
    }

    /// An interrupt at the guest's controller, as the board's has it.
    fn specifier(&self, cells: &[u32]) -> impl Iterator<Item = u32> + use<> {
        let source = cells.first().copied().unwrap_or(0);
        let mode = cells.get(1).copied().unwrap_or(LEVEL_HIGH);
        self.wires.specifier(source, mode)
    }

    fn interrupts(&self, fdt: &mut TreeWriter, node: Node<'t, 't>) {
        let mut words = Vec::new();
        for (_, parent, cells) in node.interrupts() {
            match parent.filter(|parent| self.is_inside(*parent)) {
                Some(parent) => {
                    words.push(self.handle(parent));
                    words.extend(cells);
                }
                None => words.extend(self.specifier(&cells)),
            }
        }
        if !words.is_empty() {
            fdt.property_array_u32("interrupts-extended", &words);
        }
    }
}

/// Writes the windows of a host bridge, below a bus with two cells an address.
fn windows(fdt: &mut TreeWriter, node: Node<'_, '_>) {
    let mut words = Vec::new();
    for window in node.windows().unwrap_or_default() {
        words.extend(window.bus);
        let Range { start, size } = window.range;
        for number in [start, size] {
            words.extend([(number >> 32) as u32, number as u32]);
        }
    }
    fdt.property_array_u32("ranges", &words);
}
