//! When a hart looks at the words that partners of its vCPU wait for.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use scheduler::Ticks;

/// Why a hart looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookFor {
    /// Partners wait for words.
    Partners,
    /// Another machine is favoured, and the vCPU fills a gap.
    Favoured,
    /// The vCPU may wait for a partner without leaving.
    Wait {
        /// The last look at it has found that.
        again: bool,
    },
}

impl LookFor {
    /// The same, of a vCPU that was found in a wait last or was not.
    #[must_use]
    pub const fn of(self, again: bool) -> Self {
        match self {
            Self::Partners | Self::Favoured => self,
            Self::Wait { .. } => Self::Wait { again },
        }
    }

    /// How long after the dispatch the first look comes, where a change of vCPU takes `change`.
    const fn first(self, change: u64) -> u64 {
        match self {
            // Whoever holds a lock for less has passed it on by then.
            Self::Partners => change / 2,
            Self::Favoured => change * 2,
            Self::Wait { again: true } => change,
            // A small part of a slice of fifty changes, and few looks in it at a vCPU that is at work all the time.
            Self::Wait { again: false } => change.saturating_mul(12),
        }
    }
}

/// When a hart next looks, in the board's time. Only the hart itself writes to it.
///
/// Each look that finds nothing doubles the time to the next, so that looks take a small part of a long stay.
#[derive(Debug)]
pub struct PartnerLooks {
    next: AtomicU64,
    gap: AtomicU64,
    for_partners: AtomicBool,
    /// The next comes less than a change after the dispatch.
    first: AtomicBool,
}

/// Stands for no look.
const NEVER: u64 = u64::MAX;

impl Default for PartnerLooks {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(NEVER),
            gap: AtomicU64::new(1),
            for_partners: AtomicBool::new(true),
            first: AtomicBool::new(true),
        }
    }
}

impl PartnerLooks {
    /// A vCPU has the hart from `now` on, where a change of vCPU takes `change`.
    pub fn begin(&self, now: Ticks, change: Ticks, reason: LookFor) {
        self.for_partners.store(
            matches!(reason, LookFor::Partners | LookFor::Favoured),
            Ordering::Relaxed,
        );
        self.first
            .store(reason == LookFor::Partners, Ordering::Relaxed);
        self.set(now, reason.first(change.get()).max(1));
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

    /// Whether it looks at what partners wait for.
    #[must_use]
    pub fn is_for_partners(&self) -> bool {
        self.for_partners.load(Ordering::Relaxed)
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

    const AT_WORK: LookFor = LookFor::Wait { again: false };
    const IN_A_WAIT: LookFor = LookFor::Wait { again: true };

    /// When a hart looks that is given to a vCPU at 1000, up to `end`.
    fn looks(reason: LookFor, change: u64, end: u64) -> Vec<u64> {
        let looks = PartnerLooks::default();
        assert!(!looks.is_due(Ticks::new(u64::MAX - 1)));
        looks.begin(Ticks::new(1000), Ticks::new(change), reason);
        assert_eq!(looks.is_for_turns(), reason == LookFor::Partners);
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
        assert_eq!(
            looks(LookFor::Partners, 100, 2600),
            [50, 150, 350, 750, 1550]
        );
        assert_eq!(looks(IN_A_WAIT, 100, 2600), [100, 300, 700, 1500]);
    }

    #[test]
    fn a_vcpu_that_is_at_work_sees_two_looks_in_a_slice_of_fifty_changes() {
        assert_eq!(looks(AT_WORK, 100, 6000), [1200, 3600]);
    }

    #[test]
    fn a_change_that_takes_no_time_yet_makes_no_storm_of_looks() {
        for reason in [LookFor::Partners, AT_WORK, IN_A_WAIT] {
            assert_eq!(looks(reason, 0, 1_000_000).len(), 19);
        }
        assert_eq!(looks(LookFor::Partners, 1, 1008), [1, 3, 7]);
    }

    #[test]
    fn no_time_overflows() {
        for reason in [LookFor::Partners, AT_WORK, IN_A_WAIT] {
            let looks = PartnerLooks::default();
            looks.begin(Ticks::new(u64::MAX - 1), Ticks::new(u64::MAX), reason);
            for _ in 0..100 {
                assert_eq!(looks.next(), u64::MAX);
                looks.found_nothing(Ticks::new(u64::MAX - 1));
            }
        }
    }

    #[test]
    fn what_was_found_last_counts_for_waits_alone() {
        assert_eq!(AT_WORK.of(true), IN_A_WAIT);
        assert_eq!(IN_A_WAIT.of(false), AT_WORK);
        assert_eq!(LookFor::Partners.of(true), LookFor::Partners);
    }
}
