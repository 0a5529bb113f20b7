//! Entries of a shadow table, and the making of a leaf.

use riscv::page_table::{
    ACCESSED, DIRTY, EXECUTE, MEMORY_TYPE, PPN_MASK, PPN_SHIFT, READ, SOFTWARE, USER, VALID, WRITE,
};

use crate::memory::address::{HostPhysical, PAGE_SIZE};

/// Set in each leaf from the start: the guest's own bits have been set by then, or it cannot be written through the leaf.
const ACCESSED_AND_DIRTY: u64 = ACCESSED | DIRTY;
/// A table all of whose leaves are pieces of one leaf of the guest's.
const ONE_LEAF: u64 = SOFTWARE;

/// The level of the largest leaves: 1 GiB. A table below an entry of this level leads to tables of pages alone.
pub const LARGEST: u32 = 2;

/// Bytes that a leaf at `level` maps.
pub const fn size(level: u32) -> u64 {
    PAGE_SIZE << (9 * level)
}

/// A leaf of the shadow tables, as the hypervisor has checked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The guest-virtual address that it is for, anywhere in it.
    pub address: u64,
    /// Host address of the byte at this address.
    pub host: HostPhysical,
    /// 0 for 4 KiB, 1 for 2 MiB, 2 for 1 GiB.
    pub level: u32,
    /// The highest level at which a table holds pieces of the guest's leaf and nothing else that the guest would fence by another
    /// address; [`level`](Self::level) where the shadow's leaf is the guest's.
    pub whole: u32,
    /// Rights, U and the memory type, each where the guest's entry has it.
    pub rights: u64,
    /// The guest-physical page, where it may be sent elsewhere while the guest runs.
    pub moves: Option<u64>,
}

impl Leaf {
    /// Of an entry of the guest's, what a shadow leaf has as well, if it is to allow no more than `most` (R, W and X).
    #[must_use]
    pub const fn rights_of(entry: u64, most: u64) -> u64 {
        entry & (USER | MEMORY_TYPE) | entry & most & (READ | WRITE | EXECUTE)
    }

    /// Encodes the leaf as an entry.
    pub(super) fn bits(&self) -> u64 {
        let base = self.host.raw() & !(size(self.level) - 1);
        let number = (base / PAGE_SIZE) & PPN_MASK;
        number << PPN_SHIFT | self.rights | ACCESSED_AND_DIRTY | VALID
    }
}

/// Decoded entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Nothing,
    /// The next table, and whether it holds pieces of one leaf of the guest's.
    Table(HostPhysical, bool),
    Leaf,
}

impl Entry {
    pub const fn of(bits: u64) -> Self {
        if bits & VALID == 0 {
            return Self::Nothing;
        }
        if bits & (READ | WRITE | EXECUTE) != 0 {
            return Self::Leaf;
        }
        let number = bits >> PPN_SHIFT & PPN_MASK;
        Self::Table(HostPhysical::new(number * PAGE_SIZE), bits & ONE_LEAF != 0)
    }

    /// The entry that leads to a table.
    pub const fn to_table(table: HostPhysical, one_leaf: bool) -> u64 {
        let mark = if one_leaf { ONE_LEAF } else { 0 };
        ((table.raw() / PAGE_SIZE) & PPN_MASK) << PPN_SHIFT | VALID | mark
    }
}
