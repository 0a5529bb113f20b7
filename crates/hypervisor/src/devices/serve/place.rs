//! Where the device lies in a guest's address space. The guest finds the regions set up as they stay: from the largest on, each behind the one
//! before, which is where a guest that sets them up anew puts them, too.

use abi::serve::{WINDOW_BYTES, ring};

use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};
use board::guest_tree::{PCI_CONFIGURATION_BASE, PCI_CONFIGURATION_SIZE, PCI_WINDOW_BASE};

/// Places of the device of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Region in which granted pages appear.
    pub window: GuestRegion,
    /// Region of requests and answers.
    pub rings: GuestRegion,
    pub registers: GuestRegion,
    /// Configuration space of its bridge.
    pub configuration: GuestRegion,
}

impl Places {
    /// Places of a device with so many disks.
    #[must_use]
    pub fn of(disks: usize) -> Self {
        // Sizes of PCI's regions are powers of two.
        let disks = disks.max(1).next_power_of_two() as u64;
        let region =
            |base: u64, size| GuestRegion::new(GuestPhysical::new(base), size).unwrap_or_default();
        let window = region(PCI_WINDOW_BASE, WINDOW_BYTES * disks);
        let rings = region(window.end().raw(), ring::RING_BYTES * disks);
        Self {
            window,
            rings,
            registers: region(rings.end().raw(), PAGE_SIZE),
            configuration: region(PCI_CONFIGURATION_BASE, PCI_CONFIGURATION_SIZE),
        }
    }

    /// The registers and the configuration space, with what lies between: the range that traps.
    #[must_use]
    pub fn trapped(&self) -> GuestRegion {
        GuestRegion::between(self.registers.base(), self.configuration.end()).unwrap_or_default()
    }

    /// The window and the rings, which are mapped.
    #[must_use]
    pub fn mapped(&self) -> GuestRegion {
        GuestRegion::between(self.window.base(), self.rings.end()).unwrap_or_default()
    }

    /// All that the bridge leads to.
    #[must_use]
    pub fn behind_bridge(&self) -> GuestRegion {
        GuestRegion::between(self.window.base(), self.registers.end()).unwrap_or_default()
    }
}
