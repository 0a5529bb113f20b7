//! How often something may happen at most.

use core::sync::atomic::{AtomicU64, Ordering};

/// Lets something through if the last time was long enough ago, so that a flood costs nobody else anything.
#[derive(Debug)]
pub struct Spacing {
    /// Ticks of the timebase.
    interval: u64,
    /// When something was let through last, and one more, so that 0 is never.
    last: AtomicU64,
}

impl Spacing {
    /// At most `a_second` times a second, where a second has `hertz` ticks.
    #[must_use]
    pub fn new(hertz: u32, a_second: u32) -> Self {
        Self {
            interval: u64::from(hertz / a_second.max(1)),
            last: AtomicU64::new(0),
        }
    }

    /// Whether it may happen at `now`, in ticks; if so it counts as having happened.
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

    /// A second is a second, whatever the board's timebase is.
    #[test]
    fn the_interval_follows_the_timebase() {
        for hertz in [1_000_000, 10_000_000, 1_000_000_000] {
            let spacing = Spacing::new(hertz, 100);
            let ticks = u64::from(hertz);
            let many = (0..10_000).filter(|step| spacing.admits(step * ticks / 10_000));
            assert_eq!(many.count(), 100, "{hertz}");
        }
    }
}
