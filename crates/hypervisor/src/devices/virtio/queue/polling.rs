//! Adaptive polling of a queue, in place of a notification and an interrupt for each operation.
//!
//! Telling is an exit each: at the guest's notification, and at the device's interrupt. Where much is under way and ends quickly, one look serves
//! several operations in both directions. The rule: **with so much under way that an eighth of it is two or more, the queue is looked at
//! each eighth of the time that an operation takes**, and nobody tells of anything meanwhile. So nobody waits for longer than that eighth, by a
//! timer, wherever the guest's or the device's next operation stays. If operations are spread evenly, an eighth of them ends in that time
//! (Little's law), so that a look serves two or more each way.
//!
//! No look comes later than [`PATIENCE`]. Where fewer than two operations end in that time, as on a slow disk, an exit is little beside an
//! operation, and each side tells at once. So it does after a look that found nothing.
//!
//! **A guest at work** has fewer operations under way, as it has no time for more, and an exit takes of that time. Where [`STREAK`] looks in a row
//! find that the only vCPU of a guest has not waited, and [`BATCH`] or more are under way, looks come when as many have ended: after an operation's
//! time at most, and not later than [`LONGER`] times the patience. One look that finds the vCPU waiting ends this.

/// The share of an operation's time that somebody may wait for.
const SHARE: u64 = 8;
/// Operations that a look is to serve at least.
const WORTH: u64 = 2;
/// Operations under way below which a queue is never looked at from time to time.
pub const MIN_POLLED: u16 = (SHARE * WORTH) as u16;
/// The longest time between two looks, in microseconds. Two operations in this time are 100,000 a second, and an exit takes some two
/// microseconds of a hart of 1 GHz.
pub const PATIENCE: u64 = 20;
/// Looks in a row that must have found a guest at work; and so many go by without the question after one that has found it waiting.
const STREAK: u8 = 16;
/// Operations that a look is to serve where the guest is at work, and that must be under way for that.
pub const BATCH: u16 = 3;
/// Factor by which a busy guest may have to wait longer than the patience.
const LONGER: u64 = 3;
/// Bits behind the point of [`AdaptivePolling::part`].
const FRACTION: u32 = 16;

/// The pace of one queue's work. Times are ticks of the board's timebase.
#[derive(Debug)]
pub struct AdaptivePolling {
    patience: u64,
    /// The operation that is timed now, and when it began.
    timed: Option<(u16, u64)>,
    /// Duration of an operation, by the latest timed operation; 0 before the first.
    takes: u64,
    /// The time between two looks, and the part of what is under way that ends in it.
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

    /// The time between two looks, if they are worth it while so many operations are under way.
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

    /// Asks at a look whether the guest is at work, if it matters: so much is under way, and not so much that looks are worth it anyway. Says whether
    /// [enough](Self::is_guest_busy) looks in a row have found it so. One that waits is not asked again for a while, as the question costs, too.
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

    /// At a look at a queue that is not looked at from time to time, but whenever something ends: whether what is made available meanwhile can wait for
    /// that. It waits for a part of an operation's time alone where much is under way; and a guest at work can wait, for the patience at most if
    /// operations are spread evenly.
    pub fn can_wait(&mut self, under_way: u16, is_at_work: impl FnOnce() -> bool) -> bool {
        let is_at_work = self.note_guest(under_way, is_at_work);
        let soon = self.patience.saturating_mul(under_way.into());
        self.part_of(under_way) >= WORTH || is_at_work && (1..=soon).contains(&self.takes)
    }

    /// An operation begins, by a name that no other has meanwhile. It is timed unless another one is.
    #[inline]
    pub const fn begins(&mut self, operation: u16, now: u64) {
        if self.timed.is_none() {
            self.timed = Some((operation, now));
        }
    }

    /// An operation has ended.
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
        // One that takes longer than the others by chance changes little.
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
        // Nobody asks where it does not matter.
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
