//! Copies of devices' nodes for a guest.

use alloc::format;
use alloc::vec::Vec;

use super::GivenDevices;
use super::depend::{PropertyKind, fixed_rate, kind, references};
use crate::devices::is_coherent;
use crate::interrupt_parent::InterruptParent;
use crate::tree::{Node, Tree};
use crate::writer::TreeWriter;

/// Interrupt flags of the binding: a high level, for a controller of the board that distinguishes no modes.
const LEVEL_HIGH: u32 = 4;

impl<'t> GivenDevices<'t> {
    /// Writes the devices' nodes for a guest, below a bus with two cells an address and two a size whose addresses are the computer's. `first` is the
    /// first handle that is free in the guest's tree.
    pub(crate) fn write(&self, fdt: &mut TreeWriter, wires: InterruptParent, first: u32) {
        let Some(tree) = self.tree else {
            return;
        };
        let copy = Copy {
            tree,
            given: self,
            wires,
            first,
        };
        for node in self.devices.iter().filter_map(|place| tree.at(*place)) {
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
        let registers = node.registers();
        if !registers.is_empty() {
            let pairs = registers.iter().flat_map(|range| [range.start, range.size]);
            let pairs: Vec<u64> = pairs.collect();
            fdt.property_array_u64("reg", &pairs);
        } else if let Some(value) = node.property("reg") {
            fdt.property("reg", value);
        }
        // Addresses below it are written as the computer's.
        let is_bus = node.has("ranges");
        if is_bus {
            fdt.property_null("ranges");
            fdt.property_u32("#address-cells", 2);
            fdt.property_u32("#size-cells", 2);
        }
        if is_top && !is_coherent(node) {
            fdt.property_null("dma-noncoherent");
        }
        self.interrupts(fdt, node);
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

    fn interrupts(&self, fdt: &mut TreeWriter, node: Node<'t, 't>) {
        let mut words = Vec::new();
        for (_, parent, cells) in node.interrupts() {
            let inside = parent.filter(|parent| {
                let mut tops = self.given.devices.iter();
                tops.any(|top| self.tree.at(*top).is_some_and(|top| parent.is_in(top)))
            });
            match inside {
                Some(parent) => {
                    words.push(self.handle(parent));
                    words.extend(cells);
                }
                None => {
                    let source = cells.first().copied().unwrap_or(0);
                    let mode = cells.get(1).copied().unwrap_or(LEVEL_HIGH);
                    words.extend(self.wires.specifier(source, mode));
                }
            }
        }
        if !words.is_empty() {
            fdt.property_array_u32("interrupts-extended", &words);
        }
    }
}
