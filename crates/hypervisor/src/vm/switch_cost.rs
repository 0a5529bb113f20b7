//! Cost of a context switch, measured by each hart: a spinning vCPU polls no longer than a round trip takes.

use core::sync::atomic::{AtomicU64, Ordering};

use scheduler::Ticks;

/// Inverse weight of one switch: a new one makes up an eighth of the mean.
const WEIGHT: u64 = 8;

/// Value of a hart that no vCPU has left since the hart was idle or entered a guest.
const NOBODY_LEFT: u64 = u64::MAX;

/// Running mean of the time of a switch, in the board's time. Written by the hart itself alone.
#[derive(Debug)]
pub struct SwitchCost {
    left_at: AtomicU64,
    /// `WEIGHT` times the mean.
    sum: AtomicU64,
}

impl Default for SwitchCost {
    fn default() -> Self {
        Self {
            left_at: AtomicU64::new(NOBODY_LEFT),
            sum: AtomicU64::new(0),
        }
    }
}

impl SwitchCost {
    /// Begins a switch: a vCPU has left the hart.
    pub fn leave(&self, now: Ticks) {
        self.left_at.store(now.get(), Ordering::Relaxed);
    }

    /// Marks an idle hart: the time that follows is no part of a switch.
    pub fn idle(&self) {
        self.left_at.store(NOBODY_LEFT, Ordering::Relaxed);
    }

    /// Ends a switch: a vCPU is about to run.
    pub fn enter(&self, now: Ticks) {
        let left_at = self.left_at.load(Ordering::Relaxed);
        if left_at == NOBODY_LEFT {
            return;
        }
        self.idle();
        let took = now.get().saturating_sub(left_at);
        let sum = self.sum.load(Ordering::Relaxed);
        let new = (sum - sum / WEIGHT).saturating_add(took);
        self.sum.store(new, Ordering::Relaxed);
    }

    /// Mean time of a switch, 0 before the first one.
    #[must_use]
    pub fn mean(&self) -> Ticks {
        Ticks::new(self.sum.load(Ordering::Relaxed) / WEIGHT)
    }

    /// Measured time of two context switches.
    #[must_use]
    pub fn round_trip(&self) -> Ticks {
        self.mean() + self.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(cost: &SwitchCost, took: u64) {
        cost.leave(Ticks::new(1000));
        cost.enter(Ticks::new(1000 + took));
    }

    #[test]
    fn the_mean_comes_to_what_changes_take() {
        let cost = SwitchCost::default();
        assert_eq!(cost.mean(), Ticks::ZERO);
        for took in [63, 2] {
            for _ in 0..100 {
                change(&cost, took);
            }
            let mean = cost.mean().get();
            assert!(mean.abs_diff(took) <= 1, "{mean} for {took}");
        }
        change(&cost, 802);
        assert!(cost.mean() < Ticks::new(110), "one counts an eighth");
    }

    #[test]
    fn idle_time_is_not_switch_time() {
        let cost = SwitchCost::default();
        cost.leave(Ticks::new(10));
        cost.idle();
        cost.enter(Ticks::new(1_000_000));
        cost.enter(Ticks::new(2_000_000));
        assert_eq!(cost.mean(), Ticks::ZERO);
    }

    #[test]
    fn no_time_overflows() {
        let cost = SwitchCost::default();
        for _ in 0..100 {
            cost.leave(Ticks::ZERO);
            cost.enter(Ticks::new(u64::MAX - 1));
            cost.leave(Ticks::new(u64::MAX - 1));
            cost.enter(Ticks::ZERO);
        }
    }
}
