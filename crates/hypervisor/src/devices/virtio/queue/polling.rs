//! Adaptive polling of a queue, in place of a notification and an interrupt for each operation.
//!
//! A notification of the guest and an interrupt of the device are an exit each. While many operations are in flight and complete quickly, one
//! poll serves several of them in both directions. The rule: **while an eighth of the operations in flight is two or more, the queue is polled
//! each eighth of an operation's time**, without notifications and interrupts. A timer bounds every wait by that eighth. If operations are spread
//! evenly, an eighth of them completes in that time (Little's law), so that a poll serves two or more each way.
//!
//! The interval is at most [`PATIENCE`]. If fewer than two operations complete in that time, as on a slow disk, an exit costs little beside an
//! operation, and each side notifies at once. The same holds after a poll that found nothing.
//!
//! **A busy guest** has fewer operations in flight, as it has no time for more, and an exit costs it time. If [`STREAK`] polls in a row find that
//! the only vCPU of a guest has not waited, and [`BATCH`] or more operations are in flight, polls come when as many have completed: after an
//! operation's time at most, and not later than [`LONGER`] times the patience. One poll that finds the vCPU waiting ends this.

/// Inverse of the part of an operation's time that a completion may wait.
const SHARE: u64 = 8;
/// Minimum operations that a poll must serve to be worthwhile.
const WORTH: u64 = 2;
/// Operations in flight below which only a busy guest's queue is polled.
pub const MIN_POLLED: u16 = (SHARE * WORTH) as u16;
/// Longest time between two polls, in microseconds. Two operations in this time are 100,000 a second, and an exit takes some two
/// microseconds of a hart of 1 GHz.
pub const PATIENCE: u64 = 20;
/// Polls in a row that must have found a guest busy; and polls without the check after one that has found it waiting.
const STREAK: u8 = 16;
/// Minimum completions a poll while the guest is busy, and minimum operations in flight for that.
pub const BATCH: u16 = 3;
/// Factor by which a busy guest may have to wait longer than the patience.
const LONGER: u64 = 3;
/// Bits behind the point of [`AdaptivePolling::part`].
const FRACTION: u32 = 16;

/// Measured pace of one queue. Times are ticks of the board's timebase.
#[derive(Debug)]
pub struct AdaptivePolling {
    patience: u64,
    /// Operation that is timed now, and its beginning.
    timed: Option<(u16, u64)>,
    /// Duration of an operation, by the latest timed operation; 0 before the first.
    takes: u64,
    /// Time between two polls, and the part of the operations in flight that completes in it.
    interval: u64,
    part: u64,
    /// Number of polls in a row that found the guest busy, up to [`STREAK`]; after it was found waiting, counts polls without the question.
    at_work: u8,
    unasked: u8,
}

impl AdaptivePolling {
    /// Queue that has timed nothing yet. Polls come no later than `patience`; with 0 none comes.
    #[must_use]
    pub const fn new(patience: u64) -> Self {
        Self {
            patience,
            timed: None,
            takes: 0,
            interval: 0,
            part: 0,
            at_work: 0,
            unasked: 0,
        }
    }

    /// Time between two polls, if polling is worthwhile with so many operations in flight.
    #[inline]
    #[must_use]
    pub fn interval(&self, under_way: u16) -> Option<u64> {
        match self.part_of(under_way) >= WORTH {
            true => Some(self.interval),
            false => self.interval_at_work(under_way),
        }
    }

    /// Operations that complete between two polls while so many are in flight.
    #[inline]
    #[must_use]
    pub fn served(&self, under_way: u16) -> u64 {
        let of_many = self.part_of(under_way);
        match of_many < WORTH && self.interval_at_work(under_way).is_some() {
            true => BATCH.into(),
            false => of_many,
        }
    }

    /// Operations that complete, of so many, in an eighth of an operation's time, or in the patience.
    #[inline]
    fn part_of(&self, under_way: u16) -> u64 {
        (u64::from(under_way) * self.part) >> FRACTION
    }

    /// Time in which [`BATCH`] operations complete, if the guest is busy and that time is not too long.
    #[inline]
    fn interval_at_work(&self, under_way: u16) -> Option<u64> {
        if !self.is_guest_busy() || under_way < BATCH || self.takes == 0 {
            return None;
        }
        let wanted = (u64::from(BATCH) * self.takes / u64::from(under_way)).max(1);
        (wanted <= LONGER * self.patience).then_some(wanted)
    }

    /// Returns true if enough polls in a row have found the guest busy.
    #[inline]
    #[must_use]
    pub const fn is_guest_busy(&self) -> bool {
        self.at_work == STREAK
    }

    /// Checks at a poll whether the guest is busy, if it matters: enough is in flight, but not so much that polls are worthwhile anyway. Returns
    /// whether [enough](Self::is_guest_busy) polls in a row have found it so. A waiting guest is not checked again for a while, as the check costs, too.
    #[inline]
    pub fn note_guest(&mut self, under_way: u16, is_at_work: impl FnOnce() -> bool) -> bool {
        if self.unasked > 0 {
            self.unasked -= 1;
            return false;
        }
        if under_way < BATCH || self.part_of(under_way) >= WORTH {
            self.at_work = 0;
        } else if !is_at_work() {
            (self.at_work, self.unasked) = (0, STREAK);
        } else if self.at_work < STREAK {
            self.at_work += 1;
        }
        self.is_guest_busy()
    }

    /// Decides, for a queue that is polled at completions alone, whether chains made available meanwhile can wait for the next one. With many
    /// operations in flight that is a part of an operation's time; and a busy guest can wait, for the patience at most if operations are spread
    /// evenly.
    pub fn can_wait(&mut self, under_way: u16, is_at_work: impl FnOnce() -> bool) -> bool {
        let is_at_work = self.note_guest(under_way, is_at_work);
        let soon = self.patience.saturating_mul(under_way.into());
        self.part_of(under_way) >= WORTH || is_at_work && (1..=soon).contains(&self.takes)
    }

    /// Notes the beginning of an operation with a unique name. It is timed unless another one is.
    #[inline]
    pub const fn begins(&mut self, operation: u16, now: u64) {
        if self.timed.is_none() {
            self.timed = Some((operation, now));
        }
    }

    /// Notes the completion of an operation.
    #[inline]
    pub fn ends(&mut self, operation: u16, now: u64) {
        if let Some((timed, began)) = self.timed
            && timed == operation
        {
            self.timed = None;
            self.learn(now.saturating_sub(began));
        }
    }

    /// Drops all timings.
    #[inline]
    pub const fn forget(&mut self) {
        self.timed = None;
    }

    fn learn(&mut self, took: u64) {
        // An operation that takes longer by chance changes little.
        let takes = match self.takes {
            0 => took,
            takes => takes - takes / SHARE + took / SHARE,
        };
        self.takes = takes.max(1);
        self.interval = (self.takes / SHARE).min(self.patience);
        self.part = (self.interval << FRACTION) / self.takes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pace that has timed one operation of so many ticks.
    fn after(takes: u64, patience: u64) -> AdaptivePolling {
        let mut pace = AdaptivePolling::new(patience);
        pace.begins(3, 1000);
        pace.ends(3, 1000 + takes);
        pace
    }

    #[test]
    fn polls_serve_two_or_more_operations() {
        let pace = after(1600, 480);
        let intervals = [1, 15, 16, 256].map(|under_way| pace.interval(under_way));
        assert_eq!(intervals, [None, None, Some(200), Some(200)]);
        assert_eq!(MIN_POLLED, 16);
    }

    /// 32 operations at a disk that does one in 10 ms, on a timebase of 24 MHz: nothing ends within the patience of 20 microseconds.
    #[test]
    fn a_slow_disk_is_not_looked_at() {
        let pace = after(32 * 240_000, 480);
        assert_eq!(pace.interval(32), None);
        // 256 that end at 100,000 a second are, and just so.
        assert_eq!(after(256 * 240, 480).interval(256), Some(480));
        assert_eq!(after(256 * 245, 480).interval(256), None);
    }

    #[test]
    fn unknown_durations_are_not_polled() {
        let mut pace = AdaptivePolling::new(480);
        assert_eq!(pace.interval(256), None);
        pace.begins(1, 10);
        pace.begins(2, 20);
        pace.ends(2, 5000);
        assert_eq!(pace.interval(256), None, "another one is timed");
        pace.forget();
        pace.ends(1, 5000);
        assert_eq!(pace.interval(256), None, "it was forgotten");
        pace.begins(1, 10);
        pace.ends(1, 10);
        assert_eq!(pace.interval(256), None, "the clock has not gone on");
        assert_eq!(after(1600, 0).interval(256), None, "without patience");
    }

    #[test]
    fn busy_guests_are_polled_after_three() {
        let mut pace = after(1600, 480);
        for look in 1..=STREAK {
            assert_eq!(pace.interval(6), None);
            assert_eq!(pace.note_guest(6, || true), look == STREAK);
        }
        let intervals = [2, 3, 4, 6, 64].map(|under_way| pace.interval(under_way));
        // 3 of 3 end in 1600 ticks, which is too long; 3 of 64 end sooner than an eighth does.
        assert_eq!(intervals, [None, None, Some(1200), Some(800), Some(200)]);
        assert_eq!([4, 64].map(|under_way| pace.served(under_way)), [3, 8]);
        assert!(!pace.note_guest(6, || false));
        assert_eq!(
            [6, 64].map(|under_way| pace.interval(under_way)),
            [None, Some(200)]
        );
    }

    #[test]
    fn waiting_guests_are_asked_rarely() {
        let mut pace = after(1600, 480);
        assert!(!pace.note_guest(6, || false));
        for _ in 0..STREAK {
            assert!(!pace.note_guest(6, || panic!("it was asked")));
        }
        let found = (0..STREAK).map(|_| pace.note_guest(6, || true));
        assert_eq!(found.filter(|enough| *enough).count(), 1);
        // The value is not asked for where it does not matter.
        for under_way in [2, 64] {
            assert!(!pace.note_guest(under_way, || panic!("it was asked")));
        }
    }

    #[test]
    fn available_chains_wait_for_near_completions() {
        let mut near = after(1600, 480);
        assert!(near.can_wait(64, || panic!("it was asked")));
        let found = (0..STREAK).map(|_| near.can_wait(4, || true));
        assert_eq!(found.filter(|can| *can).count(), 1);
        assert!(!near.can_wait(2, || true), "too few are under way");
        let mut far = after(4 * 480 + 4, 480);
        for _ in 0..2 * STREAK {
            assert!(!far.can_wait(4, || true));
        }
        assert!(far.can_wait(5, || true));
        assert!(!far.can_wait(5, || false));
        let mut unknown = AdaptivePolling::new(480);
        for _ in 0..2 * STREAK {
            assert!(!unknown.can_wait(64, || true));
        }
    }

    #[test]
    fn the_interval_follows_what_operations_take() {
        let mut pace = after(1600, u64::MAX);
        for _ in 0..100 {
            pace.begins(1, 0);
            pace.ends(1, 16_000);
        }
        let interval = pace.interval(64).unwrap();
        assert!((1990..=2000).contains(&interval), "{interval}");
    }
}
