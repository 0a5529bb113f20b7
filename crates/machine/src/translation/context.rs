//! Numbers for address spaces, so that translations of several can be kept side by side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Masking, View};
use crate::base::Privilege;
use crate::base::Space;
use crate::csr::Csrs;

/// Everything that a translation depends on besides the address and the page tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContextKey {
    user: bool,
    machine: bool,
    virtualized: bool,
    sum: bool,
    mxr: bool,
    guest_mxr: bool,
    masking: Masking,
    /// True if it stands for the address spaces of all processes: `first` is no more than a mode then.
    everywhere: bool,
    first: u64,
    second: u64,
}

impl ContextKey {
    /// The key of a view with the translation registers as they are.
    #[must_use]
    pub const fn new(view: View, csrs: &Csrs) -> Self {
        let virtualized = view.mode.virtualized;
        let machine = matches!(view.mode.privilege, Privilege::Machine);
        Self {
            user: matches!(view.mode.privilege, Privilege::User),
            machine,
            virtualized,
            sum: view.sum,
            mxr: view.mxr,
            guest_mxr: view.guest_mxr,
            masking: view.masking,
            everywhere: false,
            first: if machine {
                0
            } else if virtualized {
                csrs.vsatp
            } else {
                csrs.satp
            },
            second: if virtualized { csrs.hgatp } else { 0 },
        }
    }

    /// Tests whether a kernel's accesses have this key while user pages are out of its reach. What it maps is global as
    /// a rule: the same in all address spaces.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        !self.user && !self.machine && !self.sum && self.first >> 60 != 0
    }

    /// The key of the same accesses in whatever address space.
    const fn everywhere(self) -> Self {
        Self {
            everywhere: true,
            first: self.first >> 60 << 60,
            ..self
        }
    }

    /// Tests whether page tables play a part.
    #[must_use]
    pub const fn is_translated(&self) -> bool {
        self.first >> 60 != 0 || self.second >> 60 != 0
    }

    /// The address space, as TLB entries are tagged with it.
    #[must_use]
    pub const fn space(&self) -> Space {
        Space {
            virtualized: self.virtualized,
            paged: self.first >> 60 != 0,
            asid: if self.first >> 60 != 0 {
                self.asid() as u16
            } else {
                0
            },
            vmid: self.vmid() as u16,
        }
    }

    /// Tests whether this is an address space of V = 1.
    #[must_use]
    pub const fn is_virtualized(&self) -> bool {
        self.virtualized
    }

    /// Tests whether it stands for all address spaces.
    #[must_use]
    pub const fn is_everywhere(&self) -> bool {
        self.everywhere
    }

    /// The address-space identifier of the first stage.
    #[must_use]
    pub const fn asid(&self) -> u64 {
        self.first >> 44 & 0xffff
    }

    /// The virtual-machine identifier.
    #[must_use]
    pub const fn vmid(&self) -> u64 {
        self.second >> 44 & 0x3fff
    }
}

/// Greatest number of contexts that are told apart at a time.
pub const CONTEXTS: u16 = 511;

/// The contexts that have a number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    live: BTreeMap<ContextKey, u16>,
    next: u16,
    /// True if a kernel has used a mapping that is not global since the last fence for all of its address
    /// spaces, without V and with it: then each address space has a context of its own.
    apart: [bool; 2],
}

impl Contexts {
    /// The number of a context. `None` when the numbers are used up: forget every translation,
    /// call [`Contexts::clear`], and ask again.
    pub fn number(&mut self, key: ContextKey) -> Option<u16> {
        let key = if self.is_shared(&key) {
            key.everywhere()
        } else {
            key
        };
        if let Some(&number) = self.live.get(&key) {
            return Some(number);
        }
        if self.next >= CONTEXTS {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.live.insert(key, number);
        Some(number)
    }

    /// Tests whether address spaces share the context with this key. Their translations are global then, which hold in all
    /// address spaces (privileged specification, "Addressing and Memory Protection": the G bit).
    #[must_use]
    pub const fn is_shared(&self, key: &ContextKey) -> bool {
        key.is_kernel() && !self.apart[key.virtualized as usize]
    }

    /// The same of the context of a view whose first stage translates.
    #[must_use]
    pub const fn shares(&self, view: View) -> bool {
        matches!(view.mode.privilege, Privilege::Supervisor)
            && !view.sum
            && !self.apart[view.mode.virtualized as usize]
    }

    /// A kernel uses a mapping that is not global: contexts that are shared are forgotten, and from now on each
    /// address space has its own.
    pub fn part(&mut self, virtualized: bool) {
        self.apart[usize::from(virtualized)] = true;
        self.retire(|key| key.everywhere && key.virtualized == virtualized);
    }

    /// After a fence for all address spaces, with V or without: no translation is left that is not global.
    pub const fn join(&mut self, virtualized: bool) {
        self.apart[virtualized as usize] = false;
    }

    /// Forgets the contexts that `matches` picks: they get new numbers when they come back, so
    /// that translations kept under the old ones are never found again.
    pub fn retire(&mut self, mut matches: impl FnMut(&ContextKey) -> bool) {
        self.live.retain(|key, _| !matches(key));
    }

    /// Forgets every context and starts numbering anew.
    pub fn clear(&mut self) {
        self.live.clear();
        self.next = 0;
    }
}
