//! One entry of a table (privileged architecture, "Sv39" and "Guest Physical Address Translation").

use riscv::page_table::{ACCESSED, DIRTY, EXECUTE, PPN_MASK, PPN_SHIFT, READ, USER, VALID, WRITE};

use crate::memory::address::{HostPhysical, PAGE_SIZE};

/// Set from the start: the hypervisor does not read them, and a hart that finds one clear would fault.
const ACCESSED_AND_DIRTY: u64 = ACCESSED | DIRTY;

/// Permissions of a guest for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permissions(u64);

impl Permissions {
    /// Memory: all.
    pub const MEMORY: Self = Self(READ | WRITE | EXECUTE);
    /// Registers of a device: no execution.
    pub const DEVICE: Self = Self(READ | WRITE);
    /// Read only: no execution, and stores leave the guest.
    pub const READ_ONLY: Self = Self(READ);

    /// R, W and X as in an entry.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// Decoded entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// An access faults.
    Nothing,
    /// The table of the next level.
    Table(HostPhysical),
    /// The page, or larger piece of memory.
    Leaf(HostPhysical, Permissions),
}

/// An entry that maps a page.
#[must_use]
pub fn leaf(page: HostPhysical, permissions: Permissions) -> u64 {
    Entry::Leaf(page, permissions).bits()
}

impl Entry {
    pub fn from_bits(bits: u64) -> Self {
        if bits & VALID == 0 {
            return Self::Nothing;
        }
        let address = HostPhysical::new((bits >> PPN_SHIFT & PPN_MASK) * PAGE_SIZE);
        match bits & (READ | WRITE | EXECUTE) {
            0 => Self::Table(address),
            permissions => Self::Leaf(address, Permissions(permissions)),
        }
    }

    pub fn bits(self) -> u64 {
        let number = |address: HostPhysical| ((address.raw() / PAGE_SIZE) & PPN_MASK) << PPN_SHIFT;
        match self {
            Self::Nothing => 0,
            Self::Table(table) => number(table) | VALID,
            Self::Leaf(page, permissions) => {
                number(page) | permissions.0 | VALID | USER | ACCESSED_AND_DIRTY
            }
        }
    }
}
