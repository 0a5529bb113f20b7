//! A vCPU makes room for a partner whose turn has come.
//!
//! A waiter that has no hart gets its turn while the vCPU that gave it goes on with something else. All behind the waiter wait for it, and where the vCPU comes
//! back to the lock it waits too, so that from then on each turn takes a slice or a change of vCPU. So a hart that is given to a vCPU while partners wait for words looks
//! at these words, and gives itself to whoever's turn has come.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use scheduler::Ticks;
use scheduler::groups::NumberSet;

use crate::system::harts::Hart;
use crate::system::{Hypervisor, now};

/// When a hart next looks, in the board's time. Only the hart itself writes to it.
///
/// The first look comes half a change of vCPU after the dispatch: whoever holds a lock for less has passed it on by then. Each look that finds nothing doubles the time to
/// the next, so that looks take a small part of a long stay.
#[derive(Debug)]
pub struct PartnerLooks {
    next: AtomicU64,
    gap: AtomicU64,
    /// The next is the first of the stay.
    first: AtomicBool,
}

/// Stands for no look.
const NEVER: u64 = u64::MAX;

impl Default for PartnerLooks {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(NEVER),
            gap: AtomicU64::new(1),
            first: AtomicBool::new(true),
        }
    }
}

impl PartnerLooks {
    /// A vCPU has the hart from `now` on, where a change of vCPU takes `change`.
    pub fn begin(&self, now: Ticks, change: Ticks) {
        self.first.store(true, Ordering::Relaxed);
        self.set(now, (change.get() / 2).max(1));
    }

    /// The vCPU has left, or waits.
    pub fn end(&self) {
        self.next.store(NEVER, Ordering::Relaxed);
    }

    /// A look at `now` has found nothing, and partners still wait.
    pub fn found_nothing(&self, now: Ticks) {
        self.first.store(false, Ordering::Relaxed);
        let gap = self.gap.load(Ordering::Relaxed);
        self.set(now, gap.saturating_mul(2));
    }

    fn set(&self, now: Ticks, gap: u64) {
        self.gap.store(gap, Ordering::Relaxed);
        self.next
            .store(now.get().saturating_add(gap), Ordering::Relaxed);
    }

    /// When the hart next looks; `u64::MAX` where it does not.
    #[must_use]
    #[inline]
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Whether it looks `now`.
    #[must_use]
    #[inline]
    pub fn is_due(&self, now: Ticks) -> bool {
        self.next() <= now.get()
    }

    /// Whether this look is at words that give a turn alone. Nobody may wait for whoever waits for another word, as for the answer to a call, so that it comes
    /// a look later: by then the vCPU has had the hart for longer than the change takes.
    #[must_use]
    pub fn is_for_turns(&self) -> bool {
        self.first.load(Ordering::Relaxed)
    }
}

/// Looks at the words that partners wait for. Whether the hart is to be given to one of them.
#[inline(never)]
pub fn has_come(system: &Hypervisor, hart: &Hart) -> bool {
    let mut partners = NumberSet::EMPTY;
    let some_wait = system.with_hart(hart.index, |group| {
        let scheduler = group.scheduler_mut();
        let some_wait = !scheduler.waiting_partners(hart.index).is_empty();
        let unseen = scheduler.unseen_partners(hart.index);
        group.name(unseen, &mut partners);
        some_wait
    });
    let for_turns = hart.looks.is_for_turns();
    let comes = |vcpu| {
        let waits = system.vcpu(vcpu);
        let mut word = waits.word.lock();
        word.as_mut()
            .is_some_and(|word| (word.place().is_some() || !for_turns) && word.test(&waits.beside))
    };
    if partners.iter().any(comes) {
        return true;
    }
    match some_wait {
        true => hart.looks.found_nothing(now()),
        false => hart.looks.end(),
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a hart looks that is given to a vCPU at 1000, up to `end`.
    fn looks(change: u64, end: u64) -> Vec<u64> {
        let looks = PartnerLooks::default();
        assert!(!looks.is_due(Ticks::new(u64::MAX - 1)));
        looks.begin(Ticks::new(1000), Ticks::new(change));
        assert!(looks.is_for_turns());
        let mut made = Vec::new();
        while looks.is_due(Ticks::new(end)) {
            let now = looks.next();
            made.push(now - 1000);
            looks.found_nothing(Ticks::new(now));
            assert!(!looks.is_for_turns());
        }
        looks.end();
        assert_eq!(looks.next(), u64::MAX);
        made
    }

    #[test]
    fn each_look_is_twice_as_far_as_the_one_before() {
        assert_eq!(looks(100, 2600), [50, 150, 350, 750, 1550]);
    }

    #[test]
    fn a_change_that_takes_no_time_yet_makes_no_storm_of_looks() {
        assert_eq!(looks(0, 1_000_000).len(), 19);
        assert_eq!(looks(1, 1008), [1, 3, 7]);
    }

    #[test]
    fn no_time_overflows() {
        let looks = PartnerLooks::default();
        looks.begin(Ticks::new(u64::MAX - 1), Ticks::new(u64::MAX));
        for _ in 0..100 {
            assert_eq!(looks.next(), u64::MAX);
            looks.found_nothing(Ticks::new(u64::MAX - 1));
        }
    }
}
