//! Limit on the rate of an event.

use core::sync::atomic::{AtomicU64, Ordering};

/// Admits an event if the last one was long enough ago, so that a flood costs other VMs nothing.
#[derive(Debug)]
pub struct RateLimit {
    /// Ticks of the timebase.
    interval: u64,
    /// Time of the last admitted event plus one; 0 before the first.
    last: AtomicU64,
    /// Events refused since the last admitted one.
    refused: AtomicU64,
}

impl RateLimit {
    /// Limit of `a_second` events a second of `hertz` ticks.
    #[must_use]
    pub fn new(hertz: u32, a_second: u32) -> Self {
        Self {
            interval: u64::from(hertz / a_second.max(1)),
            last: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Admits an event at `now`, in ticks, and returns how many were refused before it; or refuses it.
    pub fn admit(&self, now: u64) -> Option<u64> {
        let last = self.last.load(Ordering::Relaxed);
        let due = last == 0 || now.wrapping_sub(last.wrapping_sub(1)) >= self.interval;
        let next = now.wrapping_add(1);
        let admitted = due
            && self
                .last
                .compare_exchange(last, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if admitted {
            Some(self.take_refused())
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            None
        }
    }

    /// Takes the count of the events that were refused since the last admitted one.
    pub fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_follows_the_timebase() {
        for hertz in [1_000_000, 10_000_000, 1_000_000_000] {
            let limit = RateLimit::new(hertz, 100);
            let ticks = u64::from(hertz);
            let many = (0..10_000).filter(|step| limit.admit(step * ticks / 10_000).is_some());
            assert_eq!(many.count(), 100, "{hertz}");
        }
    }

    #[test]
    fn refused_events_are_counted() {
        let limit = RateLimit::new(1000, 10);
        assert_eq!(limit.admit(5), Some(0));
        for time in 6..56 {
            assert_eq!(limit.admit(time), None);
        }
        assert_eq!(limit.admit(105), Some(50));
        assert_eq!(limit.admit(106), None);
        assert_eq!((limit.take_refused(), limit.take_refused()), (1, 0));
    }
}
