//! Views of an address, and the mappings that they find.

use super::{Masking, Reference};
use crate::base::Mode;

/// With which eyes an address is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// The effective privilege mode of the access.
    pub mode: Mode,
    /// SUM of the status register of the mode.
    pub sum: bool,
    /// MXR for the first stage.
    pub mxr: bool,
    /// MXR for the G-stage: HS-level's alone.
    pub guest_mxr: bool,
    /// HLVX: execute permission takes the place of read permission.
    pub execute_for_read: bool,
    /// An access by an instruction for shadow stacks. Its faults are those of stores.
    pub shadow_stack: bool,
    /// The upper bits of addresses that do not count.
    pub masking: Masking,
}

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The physical address.
    pub physical: u64,
    /// Result of the first stage: the guest physical address, or again the physical one.
    pub guest_physical: u64,
    /// log2 of the bytes that are mapped together, the smaller of the two stages.
    pub shift: u32,
    /// log2 of the bytes that the first stage maps together, 12 if it is Bare: what a fence with
    /// an address covers.
    pub first_shift: u32,
}

/// The memory references of a walk, for those who charge for them.
#[derive(Debug, Clone)]
pub struct WalkTrace {
    references: [Reference; 40],
    length: usize,
    /// The physical addresses of the entries whose A or D bit the walk has set: of the G-stage's for each of
    /// its references at most one.
    updates: [u64; 8],
    updated: usize,
    /// True if the first stage's leaf was a global mapping.
    pub global: bool,
}

impl Default for WalkTrace {
    fn default() -> Self {
        Self {
            references: [Reference::default(); 40],
            length: 0,
            updates: [0; 8],
            updated: 0,
            global: false,
        }
    }
}

impl WalkTrace {
    /// Notes a reference.
    pub(crate) fn push(&mut self, reference: Reference) {
        if let Some(place) = self.references.get_mut(self.length) {
            *place = reference;
            self.length += 1;
        }
    }

    /// Notes that the entry of the last reference maps a page.
    pub(crate) fn mark_leaf(&mut self) {
        let last = self.length.checked_sub(1);
        if let Some(reference) = last.and_then(|last| self.references.get_mut(last)) {
            reference.leaf = true;
        }
    }

    /// Notes that a bit of the entry at `physical` was set.
    pub(crate) fn note_update(&mut self, physical: u64) {
        if let Some(place) = self.updates.get_mut(self.updated) {
            *place = physical;
            self.updated += 1;
        }
    }

    /// The physical addresses of the entries whose A or D bit was set.
    #[must_use]
    pub fn updates(&self) -> &[u64] {
        self.updates.get(..self.updated).unwrap_or_default()
    }

    /// The references in the order in which they were made.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        self.references.get(..self.length).unwrap_or_default()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.length = 0;
        self.updated = 0;
        self.global = false;
    }
}
