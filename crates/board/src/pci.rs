//! Host bridges of PCI: their windows, and where the wired interrupts of their devices lead (IEEE 1275's binding of PCI, and the Devicetree
//! Specification, 2.4.3).

use alloc::vec::Vec;

use crate::Range;
use crate::cells::Cells;
use crate::tree::Node;

/// Kind whose configuration space is the standard's (ECAM): no driver but that of the guest has to set the bridge up.
const ECAM: &str = "pci-host-ecam-generic";
/// Cells of an address of PCI.
const ADDRESS_CELLS: u32 = 3;
/// Cells of a size of PCI.
const SIZE_CELLS: u32 = 2;

/// A part of the address space of harts through which they reach devices of PCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Kind and address on the bus of PCI.
    pub bus: [u32; ADDRESS_CELLS as usize],
    /// The addresses of the harts.
    pub range: Range,
}

/// An entry of `interrupt-map`.
#[derive(Clone, Debug)]
pub(crate) struct MapEntry<'t, 'a> {
    /// Address of the device and its interrupt.
    pub device: Vec<u32>,
    /// The node that takes the interrupt.
    pub parent: Option<Node<'t, 'a>>,
    /// Address at that node.
    pub address: Vec<u32>,
    /// The interrupt there.
    pub cells: Vec<u32>,
}

impl<'t, 'a> Node<'t, 'a> {
    /// Tests whether the node is a bridge of PCI, of the host or below.
    pub(crate) fn is_pci_bridge(self) -> bool {
        self.text("device_type") == Some("pci")
    }

    /// Tests whether the node is a host bridge with a standard configuration space.
    pub(crate) fn is_ecam_bridge(self) -> bool {
        self.is_pci_bridge() && self.is_compatible(ECAM)
    }

    /// Tests whether the node is a device on a bus of PCI, or lies below one.
    pub(crate) fn is_on_pci(self) -> bool {
        let above = self.parent();
        above.is_some_and(|above| above.is_pci_bridge() || above.is_on_pci())
    }

    /// Windows of a host bridge; none if a window cannot be expressed in 64 bits, or no hart reaches it.
    pub(crate) fn windows(self) -> Option<Vec<Window>> {
        let above = self.parent().filter(|_| self.is_ecam_bridge())?;
        if self.address_cells() != ADDRESS_CELLS || self.size_cells() != SIZE_CELLS {
            return None;
        }
        let mut cells = Cells::new(self.property("ranges").unwrap_or_default());
        let mut windows = Vec::new();
        while let Some(first) = cells.word() {
            let bus = [first, cells.word()?, cells.word()?];
            let (start, size) = cells.pair(above.address_cells(), SIZE_CELLS)?;
            let (start, size) = (above.translate(start?)?, size?);
            let range = Range { start, size };
            windows.push(Window { bus, range });
        }
        Some(windows)
    }

    /// Registers of the node, with the windows if it is a host bridge.
    pub(crate) fn reached(self) -> Vec<Range> {
        let mut ranges = self.registers();
        let windows = self.windows().unwrap_or_default();
        ranges.extend(windows.iter().map(|window| window.range));
        ranges
    }

    /// Entries of `interrupt-map`. Behind one whose parent is not there, nobody can tell where the next begins.
    pub(crate) fn interrupt_map(self) -> Vec<MapEntry<'t, 'a>> {
        let own = self.word("#interrupt-cells").unwrap_or(1);
        let own = own.saturating_add(self.address_cells());
        let mut cells = self.cells("interrupt-map");
        let mut take = |count: u32| cells.by_ref().take(count as usize).collect::<Vec<u32>>();
        let mut entries = Vec::new();
        loop {
            let device = take(own);
            let Some(handle) = take(1).first().copied() else {
                return entries;
            };
            let parent = self.tree().by_phandle(handle);
            let of_parent = |name| parent.and_then(|parent| parent.word(name)).unwrap_or(0);
            let (address, cells) = (of_parent("#address-cells"), of_parent("#interrupt-cells"));
            entries.push(MapEntry {
                device,
                parent,
                address: take(address),
                cells: take(cells),
            });
            if parent.is_none() {
                return entries;
            }
        }
    }
}
