//! Walks through the page tables of both stages (privileged architecture, "Virtual Address Translation Process" and "Two-Stage Address
//! Translation").

use riscv::iommu::{capabilities, control};
use riscv::page_table::{
    ACCESSED, CONTIGUOUS, DIRTY, EXECUTE, MEMORY_TYPE, PPN_MASK, PPN_SHIFT, READ, RESERVED, USER,
    VALID, WRITE,
};

use super::context::{DeviceContext, mode, root};
use super::{Access, AccessFault, Iommu, Memory, bits};

/// G: the page is one of all address spaces.
pub const GLOBAL: u64 = 1 << 5;
/// All that a stage allows that does not translate.
const ALL: u64 = VALID | READ | WRITE | EXECUTE | USER | ACCESSED | DIRTY;
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
const fn index(address: u64, level: u32, is_wide: bool) -> u64 {
    let last = if is_wide { 10 } else { 8 };
    bits(address, 12 + level * 9 + last, 12 + level * 9)
}

/// What is at a place of a table.
enum Kind {
    Leaf,
    Table(u64),
}

/// Steps 3, 4 and 6 of the process: what an entry is.
const fn kind(entry: u64, level: u32, capabilities: u64) -> Result<Kind, Trouble> {
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
            false => Ok(Kind::Leaf),
        };
    }
    if level == 0 || memory_type != 0 || entry & (DIRTY | ACCESSED | USER) != 0 {
        return Err(Trouble::Page);
    }
    Ok(Kind::Table(number << 12))
}

const fn leaf(address: u64, entry: u64, level: u32) -> Leaf {
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

impl Iommu {
    /// The second stage, of a guest physical address. An implicit access is one to a table of the first stage.
    pub(super) fn second_stage(
        &mut self,
        address: u64,
        access: Access,
        implicit: bool,
        context: &DeviceContext,
        memory: &mut dyn Memory,
    ) -> Result<Leaf, Trouble> {
        let mode = mode(context.second);
        if mode == 0 {
            return Ok(Leaf {
                physical: address,
                bytes: 1 << 30,
                entry: ALL,
            });
        }
        let top = mode as u32 - 6;
        if address >> (12 + 9 * top + 11) != 0 {
            return Err(Trouble::Page);
        }
        let (mut table, mut level) = (root(context.second), top);
        loop {
            let at = table + index(address, level, level == top) * 8;
            let entry = self.load(at, memory)?;
            if let Kind::Table(next) = kind(entry, level, self.registers.capabilities)? {
                (table, level) = (next, level - 1);
                continue;
            }
            if !allows(entry, access) || entry & USER == 0 {
                return Err(Trouble::Page);
            }
            // D of a page with a table of the first stage may be set by any access to it where both stages are updated.
            let may_write = implicit && context.has(control::UPDATE) && entry & WRITE != 0;
            let dirty = if access == Access::Write || may_write {
                DIRTY
            } else {
                0
            };
            let missing = (ACCESSED | dirty) & !entry;
            if missing == 0 {
                return Ok(leaf(address, entry, level));
            }
            if !context.has(control::GUEST_UPDATE) {
                return Err(Trouble::Page);
            }
            self.step(1);
            super::store(at, &(entry | missing).to_le_bytes(), memory)?;
            return Ok(leaf(address, entry | missing, level));
        }
    }

    /// The first stage, of an address that a device uses.
    pub(super) fn first_stage(
        &mut self,
        address: u64,
        access: Access,
        first: &First,
        context: &DeviceContext,
        memory: &mut dyn Memory,
    ) -> Result<Leaf, FirstTrouble> {
        let mode = mode(first.pointer);
        if mode == 0 {
            return Ok(Leaf {
                physical: address,
                bytes: 1 << 30,
                entry: ALL | GLOBAL,
            });
        }
        let top = mode as u32 - 6;
        // The bits above the highest index must equal its highest bit.
        let width = 12 + 9 * (top + 1);
        let extension = (address as i64) >> (width - 1);
        if extension != 0 && extension != -1 {
            return Err(Trouble::Page.into());
        }
        let (mut table, mut level, mut global) = (root(first.pointer), top, 0);
        loop {
            let guest = table + index(address, level, false) * 8;
            let found = self.second_stage(guest, Access::Read, true, context, memory);
            let place = match found {
                Ok(place) => place,
                Err(Trouble::Page) => return Err(FirstTrouble::Guest(guest, false)),
                Err(Trouble::Access) => return Err(Trouble::Access.into()),
            };
            let entry = self.load(place.physical, memory)?;
            if let Kind::Table(next) = kind(entry, level, self.registers.capabilities)? {
                (table, level) = (next, level - 1);
                global |= entry & GLOBAL;
                continue;
            }
            if !allows(entry, access) || !admits(entry, access, first) {
                return Err(Trouble::Page.into());
            }
            let dirty = if access == Access::Write { DIRTY } else { 0 };
            let missing = (ACCESSED | dirty) & !entry;
            if missing != 0 {
                if !context.has(control::UPDATE) {
                    return Err(Trouble::Page.into());
                }
                if place.entry & WRITE == 0 {
                    return Err(FirstTrouble::Guest(guest, true));
                }
                self.step(1);
                super::store(place.physical, &(entry | missing).to_le_bytes(), memory)?;
            }
            return Ok(leaf(address, entry | missing | global, level));
        }
    }
}
