//! What groups tell each other without a lock: who has work that none of its harts takes, and who has a hart that rests.
//!
//! Each group sets its own bits under its own lock, after every change. One that has work then looks for one that rests, and one that has
//! begun to rest looks for work. Both say what they have before they look, so that one of the two sees the other:
//! no hart rests while another group has work for it.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{Group, GroupId};

/// A bit for each group in each word.
#[derive(Debug, Default)]
pub struct Notices {
    /// A vCPU could go to another group, and no hart of its own is about to look for work.
    surplus: AtomicU64,
    /// A hart has nothing to do, and there is a place for a vCPU.
    takers: AtomicU64,
    /// A hart has nothing to do as soon as its vCPU waits, but would not be told: waits do not trap there.
    relaxed: AtomicU64,
    /// A hart is about to bring vCPUs to this group.
    served: AtomicU64,
}

/// A vCPU can go from one group, which has work, to another, which has a hart for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Where there is work.
    pub from: GroupId,
    /// Where a hart rests.
    pub to: GroupId,
}

impl Notices {
    /// No group has said anything.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            surplus: AtomicU64::new(0),
            takers: AtomicU64::new(0),
            relaxed: AtomicU64::new(0),
            served: AtomicU64::new(0),
        }
    }

    /// Says what `group`, whose lock the caller has, has to give or to take, and finds another group for it, by turns.
    #[inline]
    pub fn publish(&self, group: &Group) -> Option<Flow> {
        let own = group.index();
        let gives = group.gives();
        let takes = group.takes();
        say(&self.surplus, own, gives);
        say(&self.takers, own, takes);
        let relaxes = group.relaxes();
        say(&self.relaxed, own, relaxes);
        if gives && let Some(to) = next(&self.takers, own) {
            return Some(Flow { from: own, to });
        }
        if takes && let Some(from) = next(&self.surplus, own) {
            return Some(Flow { from, to: own });
        }
        if gives && let Some(to) = next(&self.relaxed, own) {
            return Some(Flow { from: own, to });
        }
        if relaxes && let Some(from) = next(&self.surplus, own) {
            return Some(Flow { from, to: own });
        }
        None
    }

    /// The same for a group whose hart has just begun to rest, and looks again by itself in a moment: where others have work, nobody is told yet that it
    /// rests. True if so.
    pub fn hold_back(&self, group: &Group) -> bool {
        let own = group.index();
        let holds = self.others_give(own) && group.takes();
        if holds {
            say(&self.surplus, own, group.gives());
            say(&self.takers, own, false);
            say(&self.relaxed, own, group.relaxes());
        }
        holds
    }

    /// The caller is about to bring vCPUs to `to`. False where another hart is: it looks for what has come up meanwhile ([`Self::after`])
    /// after that.
    pub(super) fn begin_serving(&self, to: GroupId) -> bool {
        self.served.fetch_or(to.bit(), Ordering::SeqCst) & to.bit() == 0
    }

    /// The caller has brought vCPUs to `to`.
    pub(super) fn end_serving(&self, to: GroupId) {
        self.served.fetch_and(!to.bit(), Ordering::SeqCst);
    }

    /// What else can go where one of the two is concerned, if nobody is about to see to that: whoever found it may have found `flow` instead, or have
    /// seen that the group is served, and left it.
    pub(super) fn after(&self, Flow { from, to }: Flow) -> Option<Flow> {
        let served = self.served.load(Ordering::SeqCst);
        if served & to.bit() == 0
            && self.takes(to)
            && let Some(from) = next(&self.surplus, to)
        {
            return Some(Flow { from, to });
        }
        if !self.gives(from) {
            return None;
        }
        let to = next_of(self.takers.load(Ordering::SeqCst) & !served, from)?;
        Some(Flow { from, to })
    }

    /// Whether `group` has said that a vCPU waits there, or may, without a trap.
    #[must_use]
    pub fn relaxes(&self, group: GroupId) -> bool {
        self.relaxed.load(Ordering::SeqCst) & group.bit() != 0
    }

    /// Whether another group than `group` has work.
    #[must_use]
    #[inline]
    pub fn others_give(&self, group: GroupId) -> bool {
        self.surplus.load(Ordering::SeqCst) & !group.bit() != 0
    }

    /// Whether `group` has said that it has work.
    #[must_use]
    pub fn gives(&self, group: GroupId) -> bool {
        self.surplus.load(Ordering::SeqCst) & group.bit() != 0
    }

    /// Whether `group` has said that one of its harts rests.
    #[must_use]
    pub fn takes(&self, group: GroupId) -> bool {
        self.takers.load(Ordering::SeqCst) & group.bit() != 0
    }
}

/// Sets or clears a group's bit. Most often it is as it should be, and the word stays shared between caches.
#[inline]
fn say(word: &AtomicU64, group: GroupId, on: bool) {
    if (word.load(Ordering::SeqCst) & group.bit() != 0) == on {
        return;
    }
    if on {
        word.fetch_or(group.bit(), Ordering::SeqCst);
    } else {
        word.fetch_and(!group.bit(), Ordering::SeqCst);
    }
}

/// The next group behind `own`, and then from the first, whose bit is set.
#[inline]
fn next(word: &AtomicU64, own: GroupId) -> Option<GroupId> {
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
