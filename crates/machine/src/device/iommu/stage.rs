//! Walks through the page tables of both stages (privileged architecture, "Virtual Address Translation Process" and "Two-Stage Address
//! Translation").

use riscv::iommu::control;
use riscv::page_table::{ACCESSED, DIRTY, USER, WRITE};

use super::access::{Access, store};
use super::context::{DeviceContext, mode, root};
use super::entry::{
    ALL, EntryKind, First, FirstTrouble, GLOBAL, Leaf, Trouble, admits, allows, index, kind, leaf,
};
use super::state::Iommu;
use crate::device::Memory;

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
            if let EntryKind::Table(next) = kind(entry, level, self.registers.capabilities)? {
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
            store(at, &(entry | missing).to_le_bytes(), memory)?;
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
            if let EntryKind::Table(next) = kind(entry, level, self.registers.capabilities)? {
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
                store(place.physical, &(entry | missing).to_le_bytes(), memory)?;
            }
            return Ok(leaf(address, entry | missing | global, level));
        }
    }
}
