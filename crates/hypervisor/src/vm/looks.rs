//! When a hart looks at the words that partners of its vCPU wait for.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use scheduler::Ticks;

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
