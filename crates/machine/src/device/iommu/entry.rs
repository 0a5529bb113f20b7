//! Entries of page tables, and what they allow (privileged architecture, "Virtual Address Translation Process").

use riscv::iommu::capabilities;
use riscv::page_table::{
    ACCESSED, CONTIGUOUS, DIRTY, EXECUTE, MEMORY_TYPE, PPN_MASK, PPN_SHIFT, READ, RESERVED, USER,
    VALID, WRITE,
};

use super::access::{Access, bits};
use crate::device::AccessFault;

/// G: the page is one of all address spaces.
pub const GLOBAL: u64 = 1 << 5;
/// All that a stage allows that does not translate.
pub const ALL: u64 = VALID | READ | WRITE | EXECUTE | USER | ACCESSED | DIRTY;
/// Pages of 64 KiB are the only ones that Svnapot has.
const CONTIGUOUS_PATTERN: u64 = 8;

/// Reason why a stage does not translate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The tables do not allow it.
    Page,
    /// A table is not memory.
    Access,
}

impl From<AccessFault> for Trouble {
    fn from(_: AccessFault) -> Self {
        Self::Access
    }
}

/// Reason why the first stage does not translate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstTrouble {
    /// As for the second stage.
    Own(Trouble),
    /// The second stage refuses the access to a table of the first at this guest physical address; a write, if it is to update it.
    Guest(u64, bool),
}

impl From<Trouble> for FirstTrouble {
    fn from(trouble: Trouble) -> Self {
        Self::Own(trouble)
    }
}

impl From<AccessFault> for FirstTrouble {
    fn from(_: AccessFault) -> Self {
        Self::Own(Trouble::Access)
    }
}

/// A translation of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// Address that the stage makes of the given one.
    pub physical: u64,
    /// Bytes of the page.
    pub bytes: u64,
    /// The entry.
    pub entry: u64,
}

/// First stage of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// `iosatp`.
    pub pointer: u64,
    /// True for supervisor privilege.
    pub privileged: bool,
    /// True if such accesses may reach pages of users.
    pub user_pages: bool,
}

/// Tests whether a leaf's permissions allow an access.
pub const fn allows(entry: u64, access: Access) -> bool {
    let needed = match access {
        Access::Execute => EXECUTE,
        Access::Read => READ,
        Access::Write => WRITE,
    };
    entry & needed != 0
}

/// Tests whether a first stage's leaf lets the privilege of an access through.
pub const fn admits(entry: u64, access: Access, first: &First) -> bool {
    let is_user = entry & USER != 0;
    match (first.privileged, is_user) {
        (false, is_user) => is_user,
        (true, false) => true,
        (true, true) => first.user_pages && !matches!(access, Access::Execute),
    }
}

/// Index of a table at `level`; the root of a second stage has four times as many entries.
pub const fn index(address: u64, level: u32, is_wide: bool) -> u64 {
    let last = if is_wide { 10 } else { 8 };
    bits(address, 12 + level * 9 + last, 12 + level * 9)
}

/// EntryKind of an entry.
pub enum EntryKind {
    /// It maps a page.
    Leaf,
    /// It leads to a table.
    Table(u64),
}

/// Steps 3, 4 and 6 of the process: what an entry is.
pub const fn kind(entry: u64, level: u32, capabilities: u64) -> Result<EntryKind, Trouble> {
    let memory_type = entry & MEMORY_TYPE;
    let is_reserved = entry & RESERVED != 0
        || memory_type == MEMORY_TYPE
        || memory_type != 0 && capabilities & capabilities::SVPBMT == 0
        || entry & (READ | WRITE) == WRITE
        || level != 0 && entry & CONTIGUOUS != 0;
    if entry & VALID == 0 || is_reserved {
        return Err(Trouble::Page);
    }
    let number = entry >> PPN_SHIFT & PPN_MASK;
    if entry & (READ | EXECUTE) != 0 {
        let is_misaligned = number & ((1 << (9 * level)) - 1) != 0;
        let is_odd = entry & CONTIGUOUS != 0 && number & 0xf != CONTIGUOUS_PATTERN;
        return match is_misaligned || is_odd {
            true => Err(Trouble::Page),
            false => Ok(EntryKind::Leaf),
        };
    }
    if level == 0 || memory_type != 0 || entry & (DIRTY | ACCESSED | USER) != 0 {
        return Err(Trouble::Page);
    }
    Ok(EntryKind::Table(number << 12))
}

/// The translation of an address by a leaf at `level`.
pub const fn leaf(address: u64, entry: u64, level: u32) -> Leaf {
    let mut number = entry >> PPN_SHIFT & PPN_MASK;
    if entry & CONTIGUOUS != 0 {
        number = number & !0xf | address >> 12 & 0xf;
    }
    let bytes = 1 << (12 + 9 * level);
    Leaf {
        physical: (number << 12) & !(bytes - 1) | address & (bytes - 1),
        bytes,
        entry,
    }
}
