//! A checker for missing fences: what an unlimited TLB would still hold, beside what memory says.
//!
//! Each hart's [`Shadow`] keeps every translation that the hart has used since a fence covered it,
//! the two stages each by itself, as hardware may: the first stage's tagged with V, VMID, ASID and
//! page, the G-stage's with VMID and guest-physical page, and neither with the tables' root. Every
//! use of a translation is compared with it. Where the page tables now lead elsewhere, a hart with
//! such a TLB could have used the old frame: software has left out a fence that the privileged
//! specification asks for ("Supervisor Memory-Management Fence Instruction", "Hypervisor
//! Memory-Management Fence Instructions").
//!
//! It is a checker of software, not of the machine: while it is on, nothing is taken from the host's
//! TLB, so every access is walked and sees memory as it is.

use std::collections::BTreeMap;

use super::{Fence, Mapping, View};
use crate::base::PAGE_SHIFT;
use crate::base::{Access, Privilege};
use crate::csr::Csrs;

/// Reports that a hart keeps; later ones are only counted.
const KEPT: usize = 64;
/// Translations that a hart keeps: more than any TLB. Beyond that all are forgotten.
const MOST: usize = 1 << 20;
/// Translations that are known to be held without a search.
const RECENT: usize = 64;

/// A stage of translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Of satp.
    Supervisor,
    /// VS-stage, of vsatp.
    Virtual,
    /// G-stage, of hgatp.
    Guest,
}

/// What hardware may tag a stage's translations with, beside the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Space {
    stage: Stage,
    /// Zero in the S-stage.
    vmid: u64,
    /// `None` in the G-stage.
    asid: Option<u64>,
}

/// What is held for a page: the virtual one, or the guest-physical one in the G-stage.
#[derive(Debug, Clone, Copy)]
struct Held {
    frame: u64,
    cycle: u64,
}

/// What is held of one space, by log2 of the bytes that an address in a fence stands for, and by page. A page is in one
/// of them at most. A fence finds what it covers, and no other entry is looked at: guests fence page by page.
#[derive(Debug, Clone, Default)]
struct Pages(BTreeMap<u32, BTreeMap<u64, Held>>);

impl Pages {
    fn get(&self, page: u64) -> Option<&Held> {
        self.0.values().find_map(|pages| pages.get(&page))
    }

    /// Takes the place of what was held for the page.
    fn insert(&mut self, page: u64, shift: u32, held: Held) {
        for pages in self.0.values_mut() {
            pages.remove(&page);
        }
        self.0.entry(shift).or_default().insert(page, held);
    }

    /// Forgets all pages that a fence for the address covers.
    fn forget(&mut self, address: u64) {
        for (shift, pages) in &mut self.0 {
            let more = shift.saturating_sub(PAGE_SHIFT);
            let first = address >> PAGE_SHIFT >> more << more;
            let covered = first..first.saturating_add(1 << more);
            while let Some((page, _)) = pages.range(covered.clone()).next() {
                let page = *page;
                pages.remove(&page);
            }
        }
        self.0.retain(|_, pages| !pages.is_empty());
    }

    fn count(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
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
    /// The stage whose translation has changed.
    pub stage: Stage,
    /// hgatp.VMID; zero in the S-stage.
    pub vmid: u64,
    /// The first stage's ASID; `None` in the G-stage.
    pub asid: Option<u64>,
    /// The address, virtual also where the G-stage has changed.
    pub address: u64,
    /// The frame that a TLB may still hold for it, guest-physical in the VS-stage.
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
            "hart {} at pc {:#x}, cycle {}: {:?} of {:#x}, {:?} stage",
            self.hart, self.pc, self.cycle, self.access, self.address, self.stage
        )?;
        if self.stage != Stage::Supervisor {
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

/// Translations that were compared last and are held as they are: most uses are of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Recent {
    space: Space,
    page: u64,
    frame: u64,
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
#[derive(Debug, Clone)]
pub struct Shadow {
    held: BTreeMap<Space, Pages>,
    /// Some of what is held, by the page's number.
    recent: [Option<Recent>; RECENT],
    /// The page and the tag of the last fetch, if nothing has been stored or fenced since.
    fetched: Option<(u64, u64)>,
    /// Translations noted since they were last counted, and those that there were then: as many as are held, or more.
    most_held: usize,
    found: Vec<StaleUse>,
    count: u64,
}

impl Default for Shadow {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            recent: [None; RECENT],
            fetched: None,
            most_held: 0,
            found: Vec::new(),
            count: 0,
        }
    }
}

impl Shadow {
    /// Whether a fetch from this page, by the host's tag, would find what the last one found, which has been compared: page tables can
    /// have changed only by a store, and what is held only by a fence.
    #[must_use]
    pub fn has_fetched(&self, page: u64, tag: u64) -> bool {
        self.fetched == Some((page, tag))
    }

    /// A fetch from this page has been compared.
    pub const fn note_fetch(&mut self, page: u64, tag: u64) {
        self.fetched = Some((page, tag));
    }

    /// Others may have stored: the next fetch is compared.
    pub const fn forget_fetch(&mut self) {
        self.fetched = None;
    }

    /// Notes a use of a translation, and compares it with what is held.
    pub fn note(&mut self, csrs: &Csrs, view: View, mapping: &Mapping, at: Use) {
        if at.access == Access::Store {
            self.forget_fetch();
        }
        let virtualized = view.mode.virtualized;
        if !virtualized && view.mode.privilege == Privilege::Machine {
            return;
        }
        let first = if virtualized { csrs.vsatp } else { csrs.satp };
        let vmid = if virtualized {
            csrs.hgatp >> 44 & 0x3fff
        } else {
            0
        };
        if first >> 60 != 0 {
            let space = Space {
                stage: if virtualized {
                    Stage::Virtual
                } else {
                    Stage::Supervisor
                },
                vmid,
                asid: Some(first >> 44 & 0xffff),
            };
            let page = at.address >> PAGE_SHIFT;
            let leads_to = (mapping.guest_physical, mapping.first_shift);
            self.compare(space, page, leads_to, at);
        }
        if virtualized && csrs.hgatp >> 60 != 0 {
            let space = Space {
                stage: Stage::Guest,
                vmid,
                asid: None,
            };
            let page = mapping.guest_physical >> PAGE_SHIFT;
            self.compare(space, page, (mapping.physical, PAGE_SHIFT), at);
        }
    }

    fn compare(&mut self, space: Space, page: u64, (leads_to, shift): (u64, u32), at: Use) {
        let now = leads_to >> PAGE_SHIFT << PAGE_SHIFT;
        let known = Some(Recent {
            space,
            page,
            frame: now,
        });
        let recent = &mut self.recent[page as usize % RECENT];
        if *recent == known {
            return;
        }
        *recent = known;
        let pages = self.held.entry(space).or_default();
        if let Some(held) = pages.get(page) {
            if held.frame == now {
                return;
            }
            self.count += 1;
            if self.found.len() < KEPT {
                self.found.push(StaleUse {
                    hart: at.hart,
                    pc: at.pc,
                    cycle: at.cycle,
                    access: at.access,
                    stage: space.stage,
                    vmid: space.vmid,
                    asid: space.asid,
                    address: at.address,
                    held: held.frame,
                    since: held.cycle,
                    now,
                });
            }
        }
        let held = Held {
            frame: now,
            cycle: at.cycle,
        };
        pages.insert(page, shift, held);
        self.most_held += 1;
        if self.most_held > MOST {
            self.most_held = self.held.values().map(Pages::count).sum();
            // So many are hardly ever held, and nothing is lost but what could have been found.
            if self.most_held > MOST / 2 {
                self.held.clear();
                self.recent = [None; RECENT];
                self.most_held = 0;
            }
        }
    }

    /// Forgets what a fence covers. Settings of the whole hart are no fences, and a fence for one
    /// stage says nothing of the other.
    pub fn fence(&mut self, fence: Fence) {
        self.forget_fetch();
        self.recent = [None; RECENT];
        // Global mappings are told from others by nobody here: a fence for an ASID is taken to cover none but that
        // ASID's.
        let (stage, vmid, asid, address) = match fence {
            Fence::Everything => return,
            Fence::Guest { address, vmid } => (Stage::Guest, vmid, None, address),
            Fence::Supervisor { address, asid } => (Stage::Supervisor, None, asid, address),
            Fence::Virtual {
                address,
                asid,
                vmid,
            } => (Stage::Virtual, Some(vmid), asid, address),
        };
        self.held.retain(|space, pages| {
            let covered = space.stage == stage
                && vmid.is_none_or(|vmid| vmid == space.vmid)
                && asid.is_none_or(|asid| space.asid == Some(asid));
            match address {
                _ if !covered => true,
                None => false,
                Some(address) => {
                    pages.forget(address);
                    !pages.0.is_empty()
                }
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
    use crate::base::Mode;

    const PAGE: u64 = 0x4000_0000;
    const GUEST_FRAME: u64 = 0x9000_0000;

    fn view(virtualized: bool) -> View {
        View {
            mode: Mode::new(Privilege::Supervisor, virtualized),
            sum: false,
            mxr: false,
            guest_mxr: false,
            execute_for_read: false,
            masking: super::super::Masking::None,
        }
    }

    fn csrs(asid: u64, vmid: u64) -> Csrs {
        let mut csrs = Csrs::new();
        csrs.vsatp = 8 << 60 | asid << 44;
        // The G-stage is left out where the first stage is looked at.
        csrs.hgatp = vmid << 44;
        csrs
    }

    fn note(shadow: &mut Shadow, csrs: &Csrs, address: u64, physical: u64, shift: u32) {
        let mapping = Mapping {
            physical: GUEST_FRAME,
            guest_physical: physical,
            shift,
            first_shift: shift,
        };
        shadow.note(csrs, view(true), &mapping, at(address));
    }

    fn at(address: u64) -> Use {
        Use {
            hart: 0,
            pc: 0,
            cycle: 0,
            access: Access::Load,
            address,
        }
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
            // Of another stage, another machine, another space, another page, another V.
            (
                Some(Fence::Guest {
                    address: None,
                    vmid: None,
                }),
                true,
            ),
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

    /// What is used again after a fence is held again, however lately it was compared: the next change of the page is reported.
    #[test]
    fn a_use_after_a_fence_is_held_again() {
        let csrs = csrs(3, 7);
        let fence = Fence::Virtual {
            address: None,
            asid: None,
            vmid: 7,
        };
        let mut shadow = Shadow::default();
        note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
        shadow.fence(fence);
        note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
        assert_eq!(shadow.count(), 0);
        note(&mut shadow, &csrs, PAGE, 0x8100_0000, 12);
        assert_eq!(shadow.count(), 1);
        // And there and back again is two changes.
        note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
        assert_eq!(shadow.count(), 2);
    }

    /// A fetch from the page of the last one need not be compared until something is stored or fenced.
    #[test]
    fn stores_and_fences_have_the_next_fetch_compared() {
        let csrs = csrs(3, 7);
        let fetched = || {
            let mut shadow = Shadow::default();
            shadow.note_fetch(1, 2);
            shadow
        };
        let mut shadow = fetched();
        note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
        assert!(shadow.has_fetched(1, 2), "a load changes nothing");
        assert!(!shadow.has_fetched(1, 3) && !shadow.has_fetched(2, 2));
        let mapping = Mapping {
            physical: GUEST_FRAME,
            guest_physical: GUEST_FRAME,
            shift: 12,
            first_shift: 12,
        };
        let store = Use {
            access: Access::Store,
            ..at(PAGE)
        };
        // A store in M-mode, which is not translated, too.
        let machine = View {
            mode: Mode::new(Privilege::Machine, false),
            ..view(false)
        };
        for view in [view(true), machine] {
            let mut shadow = fetched();
            shadow.note(&csrs, view, &mapping, store);
            assert!(!shadow.has_fetched(1, 2), "{view:?}");
        }
        let mut shadow = fetched();
        shadow.fence(Fence::Everything);
        assert!(!shadow.has_fetched(1, 2));
    }

    /// A guest page that moves is the G-stage's affair: no fence of the VS-stage excuses it.
    #[test]
    fn the_guest_stage_has_fences_of_its_own() {
        let address = Some(PAGE);
        let guest = |address, vmid| Fence::Guest { address, vmid };
        for (fence, stale) in [
            (guest(None, None), false),
            (guest(None, Some(7)), false),
            (guest(None, Some(8)), true),
            (guest(Some(GUEST_FRAME + 8), Some(7)), false),
            (guest(Some(GUEST_FRAME + 8), None), false),
            (guest(Some(GUEST_FRAME + 0x1000), Some(7)), true),
            (guest(Some(GUEST_FRAME), Some(8)), true),
            (
                Fence::Virtual {
                    address,
                    asid: None,
                    vmid: 7,
                },
                true,
            ),
            (
                Fence::Virtual {
                    address: None,
                    asid: None,
                    vmid: 7,
                },
                true,
            ),
        ] {
            let mut shadow = Shadow::default();
            let mut csrs = csrs(3, 7);
            csrs.hgatp |= 8 << 60;
            for physical in [0x8000_0000, 0x8100_0000] {
                let mapping = Mapping {
                    physical,
                    guest_physical: GUEST_FRAME,
                    shift: 12,
                    first_shift: 12,
                };
                shadow.note(&csrs, view(true), &mapping, at(PAGE));
                shadow.fence(fence);
            }
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
