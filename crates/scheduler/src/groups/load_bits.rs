//! Load bits: the groups with a surplus of vCPUs and the groups with an idle hart, published without a lock.
//!
//! Each group publishes its own bits under its own lock, after every change. A group with a surplus then searches for a hungry one, and a hungry
//! one for a surplus. Both publish before they search, so that one of the two sees the other: no hart stays idle while another group has a
//! surplus.

use core::sync::atomic::{AtomicU64, Ordering};

use super::directory::GroupId;

/// A bit for each group in each word.
#[derive(Debug, Default)]
pub struct LoadBits {
    surplus: AtomicU64,
    hungry: AtomicU64,
    untrapped: AtomicU64,
    /// A hart is about to migrate vCPUs to the group.
    receiving: AtomicU64,
}

/// Load of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupLoad {
    /// A vCPU could run in another group, and no hart of this one is about to search.
    pub(super) has_surplus: bool,
    /// A hart is idle, and there is a place for a vCPU.
    pub(super) is_hungry: bool,
    /// A hart will be idle as soon as its vCPU waits, but would not be kicked: waits do not trap there.
    pub(super) has_untrapped_waits: bool,
}

/// Migration that is possible: from a group with a surplus to a hungry one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Group with a surplus.
    pub from: GroupId,
    /// Group with an idle hart.
    pub to: GroupId,
}

impl LoadBits {
    /// Bits of groups that have not published yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            surplus: AtomicU64::new(0),
            hungry: AtomicU64::new(0),
            untrapped: AtomicU64::new(0),
            receiving: AtomicU64::new(0),
        }
    }

    /// Publishes the load of the group `own`, whose lock the caller has, and finds another group for a migration, in turn.
    #[inline]
    pub(super) fn publish(&self, own: GroupId, load: GroupLoad) -> Option<Flow> {
        let GroupLoad {
            has_surplus,
            is_hungry,
            has_untrapped_waits,
        } = load;
        set_bit(&self.surplus, own, has_surplus);
        set_bit(&self.hungry, own, is_hungry);
        set_bit(&self.untrapped, own, has_untrapped_waits);
        if has_surplus && let Some(to) = next_group(&self.hungry, own) {
            return Some(Flow { from: own, to });
        }
        if is_hungry && let Some(from) = next_group(&self.surplus, own) {
            return Some(Flow { from, to: own });
        }
        if has_surplus && let Some(to) = next_group(&self.untrapped, own) {
            return Some(Flow { from: own, to });
        }
        if has_untrapped_waits && let Some(from) = next_group(&self.surplus, own) {
            return Some(Flow { from, to: own });
        }
        None
    }

    /// Publishes the load of the group `own` without its hunger.
    pub(super) fn publish_sated(&self, own: GroupId, load: GroupLoad) {
        set_bit(&self.surplus, own, load.has_surplus);
        set_bit(&self.hungry, own, false);
        set_bit(&self.untrapped, own, load.has_untrapped_waits);
    }

    /// Begins a migration to `to`. Returns false if another hart is at it: that hart searches for further ones ([`Self::next_flow`]) afterwards.
    pub(super) fn begin_migration(&self, to: GroupId) -> bool {
        self.receiving.fetch_or(to.bit(), Ordering::SeqCst) & to.bit() == 0
    }

    /// Ends a migration to `to`.
    pub(super) fn end_migration(&self, to: GroupId) {
        self.receiving.fetch_and(!to.bit(), Ordering::SeqCst);
    }

    /// Next migration from or to one of the groups of a flow that no hart is about to make. Another hart may have found it and left it,
    /// because the group was receiving.
    pub(super) fn next_flow(&self, Flow { from, to }: Flow) -> Option<Flow> {
        let receiving = self.receiving.load(Ordering::SeqCst);
        if receiving & to.bit() == 0
            && self.is_hungry(to)
            && let Some(from) = next_group(&self.surplus, to)
        {
            return Some(Flow { from, to });
        }
        if !self.has_surplus(from) {
            return None;
        }
        let to = next_of(self.hungry.load(Ordering::SeqCst) & !receiving, from)?;
        Some(Flow { from, to })
    }

    /// Returns true if a vCPU of `group` waits, or would wait, without a trap.
    #[must_use]
    pub fn has_untrapped_waits(&self, group: GroupId) -> bool {
        self.untrapped.load(Ordering::SeqCst) & group.bit() != 0
    }

    /// Returns true if a group other than `group` has a surplus.
    #[must_use]
    #[inline]
    pub fn others_have_surplus(&self, group: GroupId) -> bool {
        self.surplus.load(Ordering::SeqCst) & !group.bit() != 0
    }

    /// Returns true if `group` has published a surplus.
    #[must_use]
    pub fn has_surplus(&self, group: GroupId) -> bool {
        self.surplus.load(Ordering::SeqCst) & group.bit() != 0
    }

    /// Returns true if `group` has published that a hart is idle.
    #[must_use]
    pub fn is_hungry(&self, group: GroupId) -> bool {
        self.hungry.load(Ordering::SeqCst) & group.bit() != 0
    }
}

/// Sets or clears a group's bit. Usually the bit has its value already, and the word stays shared between caches.
#[inline]
fn set_bit(word: &AtomicU64, group: GroupId, on: bool) {
    if (word.load(Ordering::SeqCst) & group.bit() != 0) == on {
        return;
    }
    if on {
        word.fetch_or(group.bit(), Ordering::SeqCst);
    } else {
        word.fetch_and(!group.bit(), Ordering::SeqCst);
    }
}

/// Next group whose bit is set: behind `own`, then from the first.
#[inline]
fn next_group(word: &AtomicU64, own: GroupId) -> Option<GroupId> {
    next_of(word.load(Ordering::SeqCst), own)
}

#[inline]
fn next_of(groups: u64, own: GroupId) -> Option<GroupId> {
    let others = groups & !own.bit();
    if others == 0 {
        return None;
    }
    let behind = others & !(own.bit() | (own.bit() - 1));
    GroupId::of_bits(if behind == 0 { others } else { behind })
}
