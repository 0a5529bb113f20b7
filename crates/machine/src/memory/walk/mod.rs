//! Page-table walks in one and two dimensions.
//!
//! Privileged specification, "Sv39", "Virtual Address Translation Process", "Sv48", "Sv57", "Svnapot",
//! and of the hypervisor extension, "Two-Stage Address Translation" with "Sv39x4" to "Sv57x4".

#[cfg(test)]
mod tests;

use super::PhysicalMemory;
use crate::base::{Access, Cause, Exception, Privilege, Reference, levels};
use crate::csr::Csrs;
use crate::csr::field::envcfg;
use crate::translation::{Mapping, View, WalkTrace};

const VALID: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 4;
const EXECUTE: u64 = 8;
const USER: u64 = 16;
const GLOBAL: u64 = 32;
const ACCESSED: u64 = 64;
const DIRTY: u64 = 128;
const PPN: u64 = ((1 << 44) - 1) << 10;
/// Bits 60:54, reserved.
const RESERVED: u64 = 0x7f << 54;
/// N: one of 16 contiguous pages that are mapped alike.
const CONTIGUOUS: u64 = 1 << 63;
/// The page number's low bits of a contiguous range, the only size that there is: 64 KiB.
const CONTIGUOUS_PAGES: u64 = 15;
const CONTIGUOUS_CODE: u64 = 8;
const PBMT: u64 = 3 << 61;

/// htinst for a fault of an implicit access: a 64-bit read for VS-stage translation.
const PSEUDO_READ: u64 = 0x3000;
/// The same for the write that updates A or D.
const PSEUDO_WRITE: u64 = 0x3020;

/// Permission that a leaf must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    access: Access,
    /// Permission to read and to write, whatever the access: a shadow stack's.
    both: bool,
    execute_for_read: bool,
    mxr: bool,
}

impl Need {
    const fn is_met_by(self, entry: u64) -> bool {
        match self.access {
            _ if self.both => entry & (READ | WRITE) == READ | WRITE,
            Access::Fetch => entry & EXECUTE != 0,
            Access::Load if self.execute_for_read => entry & EXECUTE != 0,
            Access::Load => entry & READ != 0 || (self.mxr && entry & EXECUTE != 0),
            Access::Store => entry & WRITE != 0,
        }
    }
}

struct Walk<'a> {
    csrs: &'a Csrs,
    memory: &'a mut PhysicalMemory,
    trace: &'a mut WalkTrace,
    view: View,
    access: Access,
    virtual_address: u64,
}

/// Translates an address.
///
/// # Errors
/// The exception that the access raises: a page fault, a guest-page fault, or an access fault of a
/// reference to a page table. The physical address itself is not checked.
pub fn walk(
    csrs: &Csrs,
    memory: &mut PhysicalMemory,
    trace: &mut WalkTrace,
    view: View,
    access: Access,
    virtual_address: u64,
) -> Result<Mapping, Exception> {
    trace.clear();
    let mut walk = Walk {
        csrs,
        memory,
        trace,
        view,
        access,
        virtual_address,
    };
    if view.mode.virtualized {
        return walk.first_stage(csrs.vsatp);
    }
    if view.mode.privilege == Privilege::Machine {
        if view.shadow_stack {
            return Err(walk.access_fault());
        }
        return walk.bare();
    }
    walk.first_stage(csrs.satp)
}

/// A page-table entry that passed the checks of its form.
enum Step {
    Leaf,
    Next(u64),
}

/// Tests whether a leaf of the first stage maps a page of a shadow stack, where there are such pages.
const fn is_shadow_stack(entry: u64) -> bool {
    entry & (READ | WRITE | EXECUTE) == WRITE
}

/// Checks the form of an entry at a level by what an envcfg register allows; `None` if it is invalid.
const fn step(entry: u64, level: u32, configuration: u64) -> Option<Step> {
    let pbmt_enabled = configuration & envcfg::PBMTE != 0;
    let shadow_stack = configuration & envcfg::SSE != 0 && is_shadow_stack(entry);
    let reserved = entry & (READ | WRITE) == WRITE && !shadow_stack;
    if entry & VALID == 0 || entry & RESERVED != 0 || reserved {
        return None;
    }
    let memory_type = entry & PBMT;
    if memory_type == PBMT || (memory_type != 0 && !pbmt_enabled) {
        return None;
    }
    let page = (entry & PPN) >> 10;
    if entry & (READ | WRITE | EXECUTE) == 0 {
        let leaf_bits = USER | ACCESSED | DIRTY | CONTIGUOUS;
        if level == 0 || memory_type != 0 || entry & leaf_bits != 0 {
            return None;
        }
        return Some(Step::Next(page << 12));
    }
    if page & ((1 << (9 * level)) - 1) != 0 {
        return None;
    }
    if entry & CONTIGUOUS != 0 && (level != 0 || page & CONTIGUOUS_PAGES != CONTIGUOUS_CODE) {
        return None;
    }
    Some(Step::Leaf)
}

/// The physical address that a leaf at a level gives an address.
const fn leaf_address(entry: u64, level: u32, address: u64) -> u64 {
    let shift = if entry & CONTIGUOUS != 0 {
        16
    } else {
        12 + 9 * level
    };
    let mask = (1_u64 << shift) - 1;
    (((entry & PPN) << 2) & !mask) | (address & mask)
}

impl Walk<'_> {
    /// The kind of access that faults tell of.
    const fn told(&self) -> Access {
        if self.view.shadow_stack {
            Access::Store
        } else {
            self.access
        }
    }

    fn page_fault(&self) -> Exception {
        let guest = self.view.mode.virtualized;
        Exception::at(self.told().page_fault(), self.virtual_address, guest)
    }

    fn access_fault(&self) -> Exception {
        let guest = self.view.mode.virtualized;
        Exception::at(self.told().access_fault(), self.virtual_address, guest)
    }

    /// A guest-page fault; `pseudo` is the pseudoinstruction if an implicit access caused it.
    fn guest_page_fault(&self, guest_physical: u64, pseudo: u64) -> Exception {
        let cause: Cause = self.told().guest_page_fault();
        Exception {
            guest_physical,
            // A pseudoinstruction belongs to a non-zero htval only.
            instruction: if guest_physical >> 2 == 0 { 0 } else { pseudo },
            ..Exception::at(cause, self.virtual_address, true)
        }
    }

    /// An address that needs no first stage.
    fn bare(&mut self) -> Result<Mapping, Exception> {
        let address = self.virtual_address;
        if self.view.mode.virtualized {
            let need = self.final_need();
            return self.guest_stage(address, need, 0);
        }
        if address >> 56 != 0 {
            return Err(self.access_fault());
        }
        Ok(Mapping {
            physical: address,
            guest_physical: address,
            shift: 56,
            first_shift: 12,
        })
    }

    /// Permission that the G-stage leaf of the final access must give.
    const fn final_need(&self) -> Need {
        Need {
            access: self.access,
            both: self.view.shadow_stack,
            execute_for_read: self.view.execute_for_read,
            mxr: self.view.guest_mxr,
        }
    }

    /// S-stage or VS-stage.
    fn first_stage(&mut self, atp: u64) -> Result<Mapping, Exception> {
        let Some(levels) = levels(atp) else {
            // Without a first stage there are no such pages ("Shadow Stack Memory Protection").
            if self.view.shadow_stack {
                return Err(self.access_fault());
            }
            return self.bare();
        };
        let address = self.virtual_address;
        let unused = 64 - (12 + 9 * levels);
        if ((address << unused).cast_signed() >> unused).cast_unsigned() != address {
            return Err(self.page_fault());
        }
        let configuration = if self.view.mode.virtualized {
            self.csrs.henvcfg
        } else {
            self.csrs.menvcfg
        };
        let mut table = (atp & ((1 << 44) - 1)) << 12;
        let mut level = levels;
        loop {
            level -= 1;
            let place = table + (address >> (12 + 9 * level) & 0x1ff) * 8;
            let physical = self.first_stage_entry(place, level, Access::Load)?;
            let entry = self
                .memory
                .ram
                .read::<u64>(physical)
                .ok_or_else(|| self.access_fault())?;
            match step(entry, level, configuration) {
                None => return Err(self.page_fault()),
                Some(Step::Next(next)) => {
                    self.trace.global |= entry & GLOBAL != 0;
                    table = next;
                }
                Some(Step::Leaf) => {
                    self.trace.mark_leaf();
                    self.trace.global |= entry & GLOBAL != 0;
                    return self.first_stage_leaf(entry, level, place, configuration);
                }
            }
        }
    }

    fn first_stage_leaf(
        &mut self,
        entry: u64,
        level: u32,
        place: u64,
        configuration: u64,
    ) -> Result<Mapping, Exception> {
        let user_page = entry & USER != 0;
        let user_mode = self.view.mode.privilege == Privilege::User;
        let sum = self.view.sum && self.access != Access::Fetch;
        if user_page != user_mode && !(user_page && sum) {
            return Err(self.page_fault());
        }
        self.check_permission(entry)?;
        let update = self.missing_marks(entry);
        if update != 0 {
            if configuration & envcfg::ADUE == 0 {
                return Err(self.page_fault());
            }
            let physical = self.first_stage_entry(place, level, Access::Store)?;
            self.memory
                .store_scalar(physical, entry | update, 0)
                .ok_or_else(|| self.access_fault())?;
            self.trace.note_update(physical);
        }
        let address = leaf_address(entry, level, self.virtual_address);
        let shift = 12 + 9 * level;
        if !self.view.mode.virtualized {
            return Ok(Mapping {
                physical: address,
                guest_physical: address,
                shift,
                first_shift: shift,
            });
        }
        let need = self.final_need();
        let mapping = self.guest_stage(address, need, 0)?;
        Ok(Mapping {
            shift: shift.min(mapping.shift),
            first_shift: shift,
            ..mapping
        })
    }

    /// Checks what a leaf of the first stage permits: "Shadow Stack Memory Protection" where it or the access is a shadow
    /// stack's.
    fn check_permission(&self, entry: u64) -> Result<(), Exception> {
        if self.view.shadow_stack {
            return match entry & (READ | WRITE | EXECUTE) {
                WRITE => Ok(()),
                // Copied on write, it would be a shadow stack's page.
                READ => Err(self.page_fault()),
                _ => Err(self.access_fault()),
            };
        }
        if is_shadow_stack(entry) {
            return match self.access {
                Access::Load if self.view.execute_for_read => Err(self.page_fault()),
                Access::Load => Ok(()),
                _ => Err(self.access_fault()),
            };
        }
        let need = Need {
            mxr: self.view.mxr,
            ..self.final_need()
        };
        if need.is_met_by(entry) {
            Ok(())
        } else {
            Err(self.page_fault())
        }
    }

    /// The bits among A and D that the access needs and the entry lacks.
    const fn missing_marks(&self, entry: u64) -> u64 {
        let needed = match self.access {
            Access::Store => ACCESSED | DIRTY,
            _ => ACCESSED,
        };
        needed & !entry
    }

    /// The physical address of an entry of a first-stage table, checked for a load of it or, to
    /// update it, a store to it.
    fn first_stage_entry(
        &mut self,
        place: u64,
        level: u32,
        access: Access,
    ) -> Result<u64, Exception> {
        let mut physical = place;
        if self.view.mode.virtualized {
            let need = Need {
                access,
                both: false,
                execute_for_read: false,
                mxr: false,
            };
            let pseudo = if access == Access::Store {
                PSEUDO_WRITE
            } else {
                PSEUDO_READ
            };
            physical = self.guest_stage(place, need, pseudo)?.physical;
        }
        self.check_entry(physical, access)?;
        if access == Access::Load {
            self.trace.push(Reference {
                physical,
                guest_stage: false,
                level: level as u8,
                leaf: false,
                address: self.virtual_address,
            });
        }
        Ok(physical)
    }

    /// PMP for an implicit access: as an access by S-mode.
    fn check_entry(&self, physical: u64, access: Access) -> Result<(), Exception> {
        if self
            .csrs
            .pmp
            .check(physical, 8, access, Privilege::Supervisor)
            .allowed
        {
            Ok(())
        } else {
            Err(self.access_fault())
        }
    }

    /// G-stage translation of a guest physical address.
    fn guest_stage(&mut self, address: u64, need: Need, pseudo: u64) -> Result<Mapping, Exception> {
        let atp = self.csrs.hgatp;
        let Some(levels) = levels(atp) else {
            return Ok(Mapping {
                physical: address,
                guest_physical: address,
                shift: 56,
                first_shift: 12,
            });
        };
        if address >> (14 + 9 * levels) != 0 {
            return Err(self.guest_page_fault(address, pseudo));
        }
        let enabled = self.csrs.menvcfg;
        let mut table = (atp & ((1 << 44) - 4)) << 12;
        let mut level = levels;
        loop {
            level -= 1;
            // The root table is four times as large: its index has two more bits.
            let index_mask = if level + 1 == levels { 0x7ff } else { 0x1ff };
            let place = table + (address >> (12 + 9 * level) & index_mask) * 8;
            self.check_entry(place, Access::Load)?;
            self.trace.push(Reference {
                physical: place,
                guest_stage: true,
                level: level as u8,
                leaf: false,
                address,
            });
            let entry = self
                .memory
                .ram
                .read::<u64>(place)
                .ok_or_else(|| self.access_fault())?;
            // The G-stage has no pages of shadow stacks.
            match step(entry, level, enabled & !envcfg::SSE) {
                None => return Err(self.guest_page_fault(address, pseudo)),
                Some(Step::Next(next)) => table = next,
                Some(Step::Leaf) => {
                    self.trace.mark_leaf();
                    // Every G-stage access is made as if from U-mode.
                    if entry & USER == 0 || !need.is_met_by(entry) {
                        return Err(self.guest_page_fault(address, pseudo));
                    }
                    let marks = if need.access == Access::Store {
                        ACCESSED | DIRTY
                    } else {
                        ACCESSED
                    };
                    let update = marks & !entry;
                    if update != 0 {
                        if enabled & envcfg::ADUE == 0 {
                            return Err(self.guest_page_fault(address, pseudo));
                        }
                        self.check_entry(place, Access::Store)?;
                        self.memory
                            .store_scalar(place, entry | update, 0)
                            .ok_or_else(|| self.access_fault())?;
                        self.trace.note_update(place);
                    }
                    return Ok(Mapping {
                        physical: leaf_address(entry, level, address),
                        guest_physical: address,
                        shift: 12 + 9 * level,
                        first_shift: 12,
                    });
                }
            }
        }
    }
}
