//! A checker for missing fences: what an unlimited TLB would still hold, beside what memory says.
//!
//! Each hart's [`Shadow`] keeps every translation that the hart has used since a fence covered it,
//! tagged as hardware may tag it: with V, VMID, ASID and page, and not with the tables' root. Every
//! use of a translation is compared with it. Where the page tables now lead elsewhere, a hart with
//! such a TLB could have used the old frame: software has left out a fence that the privileged
//! specification asks for ("Supervisor Memory-Management Fence Instruction", "Hypervisor
//! Memory-Management Fence Instructions").
//!
//! It is a checker of software, not of the machine: while it is on, nothing is taken from the host's
//! TLB, so every access is walked and sees memory as it is.

use std::collections::BTreeMap;

use super::{Fence, Mapping, View};
use crate::csr::Csrs;
use crate::hart::{Access, Privilege};
use crate::memory::PAGE_SHIFT;

/// Reports that a hart keeps; later ones are only counted.
const KEPT: usize = 64;
/// Translations that a hart keeps: more than any TLB. Beyond that all are forgotten.
const MOST: usize = 1 << 20;

/// What hardware may tag a translation with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tag {
    /// The virtual page, or the guest-physical one where there is no first stage.
    page: u64,
    virtualized: bool,
    vmid: u64,
    /// `None` without a first stage: such translations belong to no address space.
    asid: Option<u64>,
}

/// What is held under a tag.
#[derive(Debug, Clone, Copy)]
struct Held {
    physical: u64,
    /// log2 of the bytes that the first stage maps together.
    first_shift: u32,
    cycle: u64,
}

/// A use of a page whose translation has changed since the hart last used it, with no fence for it
/// on this hart in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleUse {
    /// The hart.
    pub hart: u32,
    /// Where it was.
    pub pc: u64,
    /// When, in cycles of the hart.
    pub cycle: u64,
    /// What it was about to do.
    pub access: Access,
    /// V of the access.
    pub virtualized: bool,
    /// hgatp.VMID, if V.
    pub vmid: u64,
    /// The first stage's ASID, if there is a first stage.
    pub asid: Option<u64>,
    /// The address.
    pub address: u64,
    /// The frame that a TLB may still hold for it.
    pub held: u64,
    /// Since when, in cycles of the hart.
    pub since: u64,
    /// The frame that memory leads to.
    pub now: u64,
}

impl std::fmt::Display for StaleUse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "hart {} at pc {:#x}, cycle {}: {:?} of {:#x}",
            self.hart, self.pc, self.cycle, self.access, self.address
        )?;
        if self.virtualized {
            write!(formatter, ", VMID {}", self.vmid)?;
        }
        if let Some(asid) = self.asid {
            write!(formatter, ", ASID {asid}")?;
        }
        write!(
            formatter,
            ": a TLB may hold frame {:#x} since cycle {}, memory says {:#x}; no fence between",
            self.held, self.since, self.now
        )
    }
}

/// Where and when a translation is used.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// The hart.
    pub hart: u32,
    /// Where it is.
    pub pc: u64,
    /// Its time in cycles.
    pub cycle: u64,
    /// What it does.
    pub access: Access,
    /// To which virtual address.
    pub address: u64,
}

/// The translations that a hart may still hold.
#[derive(Debug, Clone, Default)]
pub struct Shadow {
    held: BTreeMap<Tag, Held>,
    found: Vec<StaleUse>,
    count: u64,
}

impl Shadow {
    /// Notes a use of a translation, and compares it with what is held.
    pub fn note(&mut self, csrs: &Csrs, view: View, mapping: &Mapping, at: Use) {
        let virtualized = view.mode.virtualized;
        if !virtualized && view.mode.privilege == Privilege::Machine {
            return;
        }
        let first = if virtualized { csrs.vsatp } else { csrs.satp };
        let second = if virtualized { csrs.hgatp } else { 0 };
        if first >> 60 == 0 && second >> 60 == 0 {
            return;
        }
        let tag = Tag {
            page: at.address >> PAGE_SHIFT,
            virtualized,
            vmid: second >> 44 & 0x3fff,
            asid: (first >> 60 != 0).then_some(first >> 44 & 0xffff),
        };
        let now = mapping.physical >> PAGE_SHIFT << PAGE_SHIFT;
        if let Some(held) = self.held.get(&tag)
            && held.physical != now
        {
            self.count += 1;
            if self.found.len() < KEPT {
                self.found.push(StaleUse {
                    hart: at.hart,
                    pc: at.pc,
                    cycle: at.cycle,
                    access: at.access,
                    virtualized,
                    vmid: tag.vmid,
                    asid: tag.asid,
                    address: at.address,
                    held: held.physical,
                    since: held.cycle,
                    now,
                });
            }
        } else if self.held.contains_key(&tag) {
            return;
        }
        if self.held.len() >= MOST {
            self.held.clear();
        }
        let held = Held {
            physical: now,
            first_shift: mapping.first_shift,
            cycle: at.cycle,
        };
        self.held.insert(tag, held);
    }

    /// Forgets what a fence covers. Settings of the whole hart are no fences.
    pub fn fence(&mut self, fence: Fence) {
        let covers = |tag: &Tag, held: &Held, address: Option<u64>, asid: Option<u64>| {
            let page = |address: u64| address >> held.first_shift;
            // Global mappings are told from others by nobody here: a fence for an ASID is taken to
            // cover them, so that no report is due to that.
            address.is_none_or(|address| page(address) == page(tag.page << PAGE_SHIFT))
                && asid.is_none_or(|asid| tag.asid == Some(asid))
        };
        self.held.retain(|tag, held| match fence {
            Fence::Everything => true,
            Fence::Guest { vmid } => !tag.virtualized || vmid.is_some_and(|vmid| vmid != tag.vmid),
            Fence::Supervisor { address, asid } => {
                tag.virtualized || !covers(tag, held, address, asid)
            }
            Fence::Virtual {
                address,
                asid,
                vmid,
            } => {
                !tag.virtualized
                    || tag.vmid != vmid
                    // VS-stage fences say nothing of translations that have no VS-stage.
                    || tag.asid.is_none()
                    || !covers(tag, held, address, asid)
            }
        });
    }

    /// The first uses that were found, in order.
    #[must_use]
    pub fn found(&self) -> &[StaleUse] {
        &self.found
    }

    /// How many there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hart::Mode;

    const PAGE: u64 = 0x4000_0000;

    fn view(virtualized: bool) -> View {
        View {
            mode: Mode::new(Privilege::Supervisor, virtualized),
            sum: false,
            mxr: false,
            guest_mxr: false,
            execute_for_read: false,
        }
    }

    fn csrs(asid: u64, vmid: u64) -> Csrs {
        let mut csrs = Csrs::new();
        csrs.vsatp = 8 << 60 | asid << 44;
        csrs.hgatp = 8 << 60 | vmid << 44;
        csrs
    }

    fn note(shadow: &mut Shadow, csrs: &Csrs, address: u64, physical: u64, shift: u32) {
        let mapping = Mapping {
            physical,
            shift,
            first_shift: shift,
        };
        let at = Use {
            hart: 0,
            pc: 0,
            cycle: 0,
            access: Access::Load,
            address,
        };
        shadow.note(csrs, view(true), &mapping, at);
    }

    /// A page that changes is reported once, unless a fence of each form that covers it comes first.
    #[test]
    fn only_fences_that_cover_a_page_excuse_its_change() {
        let (asid, vmid, address) = (Some(3), 7, Some(PAGE));
        let fences = [
            (None, true),
            (
                Some(Fence::Virtual {
                    address: None,
                    asid: None,
                    vmid,
                }),
                false,
            ),
            (
                Some(Fence::Virtual {
                    address,
                    asid: None,
                    vmid,
                }),
                false,
            ),
            (
                Some(Fence::Virtual {
                    address,
                    asid,
                    vmid,
                }),
                false,
            ),
            (
                Some(Fence::Virtual {
                    address: None,
                    asid,
                    vmid,
                }),
                false,
            ),
            (Some(Fence::Guest { vmid: None }), false),
            (Some(Fence::Guest { vmid: Some(vmid) }), false),
            // Of another machine, another space, another page, another V.
            (Some(Fence::Guest { vmid: Some(8) }), true),
            (
                Some(Fence::Virtual {
                    address: None,
                    asid: None,
                    vmid: 8,
                }),
                true,
            ),
            (
                Some(Fence::Virtual {
                    address,
                    asid: Some(4),
                    vmid,
                }),
                true,
            ),
            (
                Some(Fence::Virtual {
                    address: Some(PAGE + 0x1000),
                    asid,
                    vmid,
                }),
                true,
            ),
            (
                Some(Fence::Supervisor {
                    address: None,
                    asid: None,
                }),
                true,
            ),
            (Some(Fence::Everything), true),
        ];
        for (fence, stale) in fences {
            let mut shadow = Shadow::default();
            let csrs = csrs(3, 7);
            note(&mut shadow, &csrs, PAGE + 8, 0x8000_0008, 12);
            if let Some(fence) = fence {
                shadow.fence(fence);
            }
            note(&mut shadow, &csrs, PAGE, 0x8100_0000, 12);
            note(&mut shadow, &csrs, PAGE, 0x8100_0000, 12);
            assert_eq!(shadow.count(), u64::from(stale), "{fence:?}");
        }
    }

    /// Two address spaces or two virtual machines do not see each other's pages.
    #[test]
    fn tags_keep_spaces_apart() {
        let mut shadow = Shadow::default();
        note(&mut shadow, &csrs(1, 1), PAGE, 0x8000_0000, 12);
        note(&mut shadow, &csrs(2, 1), PAGE, 0x8100_0000, 12);
        note(&mut shadow, &csrs(1, 2), PAGE, 0x8200_0000, 12);
        assert_eq!(shadow.count(), 0);
        // Another root under the same tags: what two vCPUs with one VMID look like.
        let mut other = csrs(1, 1);
        other.vsatp |= 0x80123;
        note(&mut shadow, &other, PAGE, 0x8300_0000, 12);
        assert_eq!(shadow.count(), 1);
        let found = shadow.found()[0];
        assert_eq!((found.held, found.now), (0x8000_0000, 0x8300_0000));
    }

    /// A fence with any address of a large page covers all of it.
    #[test]
    fn an_address_stands_for_its_whole_leaf() {
        let mut shadow = Shadow::default();
        let csrs = csrs(1, 1);
        note(&mut shadow, &csrs, PAGE + 0x5000, 0x8000_5000, 21);
        let address = Some(PAGE + 0x1f_f000);
        shadow.fence(Fence::Virtual {
            address,
            asid: None,
            vmid: 1,
        });
        note(&mut shadow, &csrs, PAGE + 0x5000, 0x8020_5000, 21);
        assert_eq!(shadow.count(), 0);
    }
}
