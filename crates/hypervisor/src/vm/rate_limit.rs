//! Limit on the rate of an event.

use core::sync::atomic::{AtomicU64, Ordering};

/// Admits an event if the last one was long enough ago, so that a flood costs other VMs nothing.
#[derive(Debug)]
pub struct RateLimit {
    /// Ticks of the timebase.
    interval: u64,
    /// Time of the last admitted event plus one; 0 before the first.
    last: AtomicU64,
}

impl RateLimit {
    /// Limit of `a_second` events a second of `hertz` ticks.
    #[must_use]
    pub fn new(hertz: u32, a_second: u32) -> Self {
        Self {
            interval: u64::from(hertz / a_second.max(1)),
            last: AtomicU64::new(0),
        }
    }

    /// Admits an event at `now`, in ticks, or refuses it.
    pub fn admits(&self, now: u64) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        let due = last == 0 || now.wrapping_sub(last.wrapping_sub(1)) >= self.interval;
        let next = now.wrapping_add(1);
        due && self
            .last
            .compare_exchange(last, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
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
            let many = (0..10_000).filter(|step| limit.admits(step * ticks / 10_000));
            assert_eq!(many.count(), 100, "{hertz}");
        }
    }
}
