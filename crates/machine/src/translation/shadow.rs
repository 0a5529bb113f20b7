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
const MAX_HELD: usize = 1 << 20;
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

/// Tag of a stage's translations in hardware, beside the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Space {
    stage: Stage,
    /// Zero in the S-stage.
    vmid: u64,
    /// `None` in the G-stage.
    asid: Option<u64>,
}

/// Translation held for a page: the virtual one, or the guest-physical one in the G-stage.
#[derive(Debug, Clone, Copy)]
struct Held {
    frame: u64,
    cycle: u64,
}

/// Translations held of one space, by log2 of the bytes that an address in a fence stands for, and by page. A page is in one
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
    /// The access.
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
    /// The access.
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
    /// Tests whether a fetch from this page, by the host's tag, would find what the last one found, which has been compared: page tables can
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
        if self.most_held > MAX_HELD {
            self.most_held = self.held.values().map(Pages::count).sum();
            // So many are hardly ever held, and nothing is lost but what could have been found.
            if self.most_held > MAX_HELD / 2 {
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
                ..
            } => (Stage::Virtual, Some(vmid), asid, address),
        };
        self.held.retain(|space, pages| {
            let covered = space.stage == stage
                && vmid.is_none_or(|vmid| u64::from(vmid) == space.vmid)
                && asid.is_none_or(|asid| space.asid == Some(asid.into()));
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
mod tests;
