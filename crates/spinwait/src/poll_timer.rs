//! Timer of a hart's polls while a vCPU has it.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Reason for a hart to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollReason {
    /// Partners of its vCPU wait for words.
    Partners,
    /// Another VM is boosted, and the vCPU fills a gap that it leaves.
    Boosted,
    /// The vCPU may spin for a partner without trapping.
    Undetected {
        /// The last poll found it spinning.
        again: bool,
    },
}

impl PollReason {
    /// The reason with the last finding of the vCPU.
    #[must_use]
    pub const fn with_last(self, again: bool) -> Self {
        match self {
            Self::Partners | Self::Boosted => self,
            Self::Undetected { .. } => Self::Undetected { again },
        }
    }

    /// Time from the dispatch to the first poll, where a context switch takes `switch`.
    const fn first_gap(self, switch: u64) -> u64 {
        match self {
            // A lock that is held for less has been passed on by then.
            Self::Partners => switch / 2,
            Self::Boosted => switch * 2,
            Self::Undetected { again: true } => switch,
            // A small part of a slice of fifty switches: few polls of a vCPU that works all the time.
            Self::Undetected { again: false } => switch.saturating_mul(12),
        }
    }
}

/// Time of a hart's next poll, in ticks of the timebase. Only the hart itself writes to it.
///
/// Each poll without success doubles the time to the next, so that polls take a small part of a long slice.
#[derive(Debug)]
pub struct PollTimer {
    next: AtomicU64,
    gap: AtomicU64,
    for_partners: AtomicBool,
    /// The next poll comes less than a context switch after the dispatch.
    first: AtomicBool,
}

/// No poll.
const NEVER: u64 = u64::MAX;

impl Default for PollTimer {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(NEVER),
            gap: AtomicU64::new(1),
            for_partners: AtomicBool::new(true),
            first: AtomicBool::new(true),
        }
    }
}

impl PollTimer {
    /// Starts the timer for a vCPU that has the hart from `now` on, where a context switch takes `switch`.
    #[inline]
    pub fn start(&self, now: u64, switch: u64, reason: PollReason) {
        self.for_partners.store(
            matches!(reason, PollReason::Partners | PollReason::Boosted),
            Ordering::Relaxed,
        );
        self.first
            .store(reason == PollReason::Partners, Ordering::Relaxed);
        self.set(now, reason.first_gap(switch).max(1));
    }

    /// Stops the timer: the vCPU has left, or waits.
    pub fn stop(&self) {
        self.next.store(NEVER, Ordering::Relaxed);
    }

    /// Backs off after a poll at `now` without success.
    pub fn back_off(&self, now: u64) {
        self.first.store(false, Ordering::Relaxed);
        let gap = self.gap.load(Ordering::Relaxed);
        self.set(now, gap.saturating_mul(2));
    }

    fn set(&self, now: u64, gap: u64) {
        self.gap.store(gap, Ordering::Relaxed);
        self.next.store(now.saturating_add(gap), Ordering::Relaxed);
    }

    /// Time of the next poll; `u64::MAX` if there is none.
    #[must_use]
    #[inline]
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Returns true if a poll is due at `now`.
    #[must_use]
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.next() <= now
    }

    /// Returns true if the poll is of words that partners wait for.
    #[must_use]
    pub fn polls_partners(&self) -> bool {
        self.for_partners.load(Ordering::Relaxed)
    }

    /// Returns true if the poll is of ticket locks alone. No vCPU may queue behind a waiter at another word, as none queues behind a vCPU that waits for the answer to a
    /// call, so such words are polled one gap later: by then the vCPU has had the hart for longer than the switch takes.
    #[must_use]
    pub fn polls_tickets_only(&self) -> bool {
        self.first.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const WORKING: PollReason = PollReason::Undetected { again: false };
    const SPINNING: PollReason = PollReason::Undetected { again: true };

    /// Times of polls up to `end` on a hart that a vCPU gets at 1000.
    fn polls(reason: PollReason, switch: u64, end: u64) -> Vec<u64> {
        let timer = PollTimer::default();
        assert!(!timer.is_due(u64::MAX - 1));
        timer.start(1000, switch, reason);
        assert_eq!(timer.polls_tickets_only(), reason == PollReason::Partners);
        let mut made = Vec::new();
        while timer.is_due(end) {
            let now = timer.next();
            made.push(now - 1000);
            timer.back_off(now);
            assert!(!timer.polls_tickets_only());
        }
        timer.stop();
        assert_eq!(timer.next(), u64::MAX);
        made
    }

    #[test]
    fn gap_doubles_after_each_poll() {
        assert_eq!(
            polls(PollReason::Partners, 100, 2600),
            [50, 150, 350, 750, 1550]
        );
        assert_eq!(polls(SPINNING, 100, 2600), [100, 300, 700, 1500]);
    }

    #[test]
    fn working_vcpu_is_polled_twice_a_slice() {
        assert_eq!(polls(WORKING, 100, 6000), [1200, 3600]);
    }

    #[test]
    fn unknown_switch_time_causes_no_storm() {
        for reason in [PollReason::Partners, WORKING, SPINNING] {
            assert_eq!(polls(reason, 0, 1_000_000).len(), 19);
        }
        assert_eq!(polls(PollReason::Partners, 1, 1008), [1, 3, 7]);
    }

    #[test]
    fn times_do_not_overflow() {
        for reason in [PollReason::Partners, WORKING, SPINNING] {
            let timer = PollTimer::default();
            timer.start(u64::MAX - 1, u64::MAX, reason);
            for _ in 0..100 {
                assert_eq!(timer.next(), u64::MAX);
                timer.back_off(u64::MAX - 1);
            }
        }
    }

    #[test]
    fn last_finding_counts_for_undetected_spins() {
        assert_eq!(WORKING.with_last(true), SPINNING);
        assert_eq!(SPINNING.with_last(false), WORKING);
        assert_eq!(PollReason::Partners.with_last(true), PollReason::Partners);
    }
}
