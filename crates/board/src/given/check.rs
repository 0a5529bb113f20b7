//! Conditions under which a device can be given.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::refusal::{Fault, Reason, fault};
use super::{Chooser, MemoryOf, Wish};
use crate::Range;
use crate::guest_map::{
    APLIC_BASE, APLIC_SIZE, EMULATED_BASE, PLIC_BASE, UART_BASE, UART_SIZE, UART_SOURCE,
    interrupt_files, plic_size,
};
use crate::tree::Node;
use riscv::imsic::PAGE_BYTES;

/// Kinds that are no bus masters: their bindings know neither `iommus` nor `dma-coherent`.
const NO_DMA: [&str; 6] = [
    "google,goldfish-rtc",
    "ns16550a",
    "ns16550",
    "sifive,uart0",
    "sifive,gpio0",
    "sifive,pwm0",
];

/// Tests whether a node has registers, or a window, in one of these pages.
#[inline(never)]
fn reaches(node: Node<'_, '_>, pages: &[Range]) -> bool {
    let reached = node.reached();
    let mut ranges = reached.iter().map(|range| range.pages());
    ranges.any(|range| pages.iter().any(|page| page.overlaps(range)))
}

impl<'t> Chooser<'t, '_> {
    /// Tests whether the device never reaches memory by itself.
    pub(super) fn makes_no_dma(&self, node: Node<'_, '_>) -> bool {
        NO_DMA.iter().any(|name| node.is_compatible(name))
    }

    /// Whole pages of the registers of a device and of all that is below it.
    pub(super) fn pages(&self, node: Node<'_, '_>) -> Result<Vec<Range>, Fault<'static>> {
        let own = node.registers();
        if own.is_empty() || own.len() != node.register_entries() {
            return Err(fault("reg", Reason::NoRegisters, ""));
        }
        let mut pages = Vec::new();
        let mut add = |property, range: Range| {
            let whole = range.pages();
            // The last page of the address space is none.
            if range.is_empty() || whole.end() < range.end() {
                return Err(fault(property, Reason::BadRange, &format!("{range}")));
            }
            pages.push(whole);
            Ok(())
        };
        // Devices on PCI have their registers in the windows of the bridge.
        for part in node.subtree().filter(|part| !part.is_on_pci()) {
            for range in part.registers() {
                add("reg", range)?;
            }
            if part.is_ecam_bridge() {
                let windows = part.windows();
                let windows = windows.ok_or_else(|| fault("ranges", Reason::BadWindow, ""))?;
                for window in windows {
                    add("ranges", window.range)?;
                }
            }
        }
        Ok(pages)
    }

    /// Checks a device that reaches memory by itself.
    pub(super) fn dma(
        &self,
        node: Node<'_, '_>,
        wish: &Wish<'_>,
        is_confined: bool,
    ) -> Result<(), Fault<'static>> {
        if wish.confined && !is_confined {
            return Err(fault("confined", Reason::Unconfined, ""));
        }
        if wish.memory == MemoryOf::Pages {
            return Err(fault("placement", Reason::Pages, ""));
        }
        // A bridge of PCI is a bus, too.
        let mut above = Some(node).filter(|node| node.is_pci_bridge());
        above = above.or_else(|| node.parent());
        while let Some(bus) = above {
            let map = bus.property("dma-ranges").unwrap_or_default();
            if !map.is_empty() {
                return Err(fault("dma-ranges", Reason::DmaRanges, &bus.path()));
            }
            above = bus.parent();
        }
        Ok(())
    }

    /// Checks what the node and those below it are.
    pub(super) fn check_node(&self, node: Node<'_, '_>) -> Result<(), Fault<'t>> {
        for part in node.subtree() {
            let Some(role) = self.needed.role(part) else {
                let is_other = part.is_pci_bridge() && !part.is_ecam_bridge();
                if is_other && !part.is_on_pci() {
                    let kind = part.text("compatible").unwrap_or_default();
                    return Err(fault("compatible", Reason::Pci, kind));
                }
                continue;
            };
            if part.place() == node.place() {
                return Err(fault("compatible", Reason::InUse, role));
            }
            let other = format!("{} ({role})", part.path());
            return Err(fault("devices", Reason::InUseBelow, &other));
        }
        if !node.is_enabled() {
            let status = node.text("status").unwrap_or("disabled");
            return Err(fault("status", Reason::Disabled, status));
        }
        Ok(())
    }

    /// User of a node that is not the VM with this number: a need of the hypervisor, or another VM.
    fn other_user(&self, node: Node<'_, '_>, vm: usize) -> Option<String> {
        let by_path = self.named.iter().find(|(place, owner)| {
            *owner != vm && self.tree.at(*place).is_some_and(|named| node.is_in(named))
        });
        let by_path = by_path.and_then(|(_, owner)| self.wishes.get(*owner));
        let by_path = by_path.map(|wish| wish.vm);
        let user = self.needed.role(node).or(by_path).or_else(|| {
            let start = node.registers().first()?.start;
            let mut slots = self.virtio.iter();
            let slot = slots.position(|device| device.base == start)?;
            self.slot_user(slot)
        });
        user.map(|user| format!("{} ({user})", node.path()))
    }

    /// User of a virtio-mmio slot: a VM that has it by its disks, cards and so on, or the hypervisor.
    fn slot_user(&self, slot: usize) -> Option<&str> {
        let is_in = |slots: u32| slots.checked_shr(slot as u32).unwrap_or(0) & 1 != 0;
        match self.wishes.iter().find(|wish| is_in(wish.slots)) {
            Some(wish) => Some(wish.vm),
            None => is_in(self.shared).then_some("the hypervisor"),
        }
    }

    /// Checks that nothing else which is in use has registers in these pages.
    pub(super) fn check_pages(&self, pages: &[Range], vm: usize) -> Result<(), Fault<'t>> {
        for node in self.tree.nodes() {
            if reaches(node, pages)
                && let Some(other) = self.other_user(node, vm)
            {
                return Err(fault("reg", Reason::SharedPage, &other));
            }
        }
        Ok(())
    }

    /// Paths of other devices with registers in these pages that may reach memory by themselves: the VM can drive them as well.
    pub(super) fn masters_beside(&self, pages: &[Range], device: Node<'_, '_>) -> Vec<String> {
        let nodes = self.tree.nodes().filter(|node| !node.is_in(device));
        let masters = nodes.filter(|node| reaches(*node, pages) && !self.makes_no_dma(*node));
        masters.map(Node::path).collect()
    }

    /// Interrupt sources of a node at the board's controller. Interrupts that lead to a part of the device itself have none.
    pub(super) fn sources(
        &self,
        node: Node<'_, '_>,
        device: Node<'_, '_>,
    ) -> Result<Vec<u32>, Fault<'t>> {
        let mut sources = Vec::new();
        let mapped = node.interrupt_map().into_iter();
        let mapped = mapped.map(|entry| ("interrupt-map", entry.parent, entry.cells));
        for (property, parent, cells) in node.interrupts().into_iter().chain(mapped) {
            if parent.is_some_and(|parent| parent.is_in(device)) {
                continue;
            }
            let registers = parent.map(Node::registers).unwrap_or_default();
            if registers.first().map(|range| range.start) != Some(self.controller.0) {
                let other = parent.map(Node::path).unwrap_or_default();
                return Err(fault(property, Reason::OtherController, &other));
            }
            let source = cells.first().copied().unwrap_or(0);
            if source == 0 || source > self.controller.1 {
                let other = format!("1 to {}: {source}", self.controller.1);
                return Err(fault(property, Reason::NoSource, &other));
            }
            sources.push(source);
        }
        Ok(sources)
    }

    /// Checks that nobody else has these sources.
    pub(super) fn check_sources(&self, sources: &[u32], vm: usize) -> Result<(), Fault<'t>> {
        let shared = |other: &str| Err(fault("interrupts", Reason::SharedSource, other));
        if sources.contains(&UART_SOURCE) {
            return Err(fault("interrupts", Reason::ConsoleSource, ""));
        }
        if self
            .console_source
            .is_some_and(|own| sources.contains(&own))
        {
            return shared("the console");
        }
        for (slot, device) in self.virtio.iter().enumerate() {
            if sources.contains(&device.source)
                && let Some(user) = self.slot_user(slot)
            {
                return shared(user);
            }
        }
        let others = self.named.iter().filter(|(_, owner)| *owner != vm);
        for device in others.filter_map(|(place, _)| self.tree.at(*place)) {
            for part in device.subtree() {
                let theirs = self.sources(part, device).unwrap_or_default();
                if theirs.iter().any(|source| sources.contains(source)) {
                    return shared(&part.path());
                }
            }
        }
        Ok(())
    }

    /// Checks that the device does not meet what every guest has.
    pub(super) fn check_guest(&self, pages: &[Range], wish: &Wish<'_>) -> Result<(), Fault<'t>> {
        let range = |start, size| Range { start, size };
        let controller = match self.has_files {
            true => range(APLIC_BASE, APLIC_SIZE),
            false => range(PLIC_BASE, plic_size(wish.vcpus)),
        };
        let files = if self.has_files { wish.vcpus } else { 0 };
        let memory = match wish.memory {
            MemoryOf::At(memory) => memory,
            MemoryOf::TheBoard | MemoryOf::Pages => range(0, 0),
        };
        let emulated = wish.emulated.saturating_mul(PAGE_BYTES);
        let parts = [
            ("interrupt controller", controller),
            ("interrupt files", interrupt_files(files)),
            ("console", range(UART_BASE, UART_SIZE)),
            ("emulated devices", range(EMULATED_BASE, emulated)),
            ("memory", memory),
        ];
        for (part, place) in parts {
            if pages.iter().any(|page| page.overlaps(place)) {
                return Err(fault("reg", Reason::GuestHas, part));
            }
        }
        Ok(())
    }
}
