//! Whether a spinner had better look for a little while than leave its hart: what it takes to change to another vCPU, and how
//! often looks have been worth it.

use core::sync::atomic::{AtomicU64, Ordering};

use scheduler::Ticks;

/// By how much one change counts: a new one makes up an eighth of the mean.
const WEIGHT: u64 = 8;

/// Stands for a hart that no vCPU has left since it last had none, or entered one.
const NOBODY_LEFT: u64 = u64::MAX;

/// The running mean of what a change takes, in the board's time. Only the hart itself writes to it.
#[derive(Debug)]
pub struct ChangeCost {
    left_at: AtomicU64,
    /// `WEIGHT` times the mean.
    sum: AtomicU64,
}

impl Default for ChangeCost {
    fn default() -> Self {
        Self {
            left_at: AtomicU64::new(NOBODY_LEFT),
            sum: AtomicU64::new(0),
        }
    }
}

impl ChangeCost {
    /// A vCPU has given the hart away.
    pub fn leave(&self, now: Ticks) {
        self.left_at.store(now.get(), Ordering::Relaxed);
    }

    /// There is nobody to take the hart: what follows is no part of a change.
    pub fn rest(&self) {
        self.left_at.store(NOBODY_LEFT, Ordering::Relaxed);
    }

    /// A vCPU is about to run.
    pub fn enter(&self, now: Ticks) {
        let left_at = self.left_at.load(Ordering::Relaxed);
        if left_at == NOBODY_LEFT {
            return;
        }
        self.rest();
        let took = now.get().saturating_sub(left_at);
        let sum = self.sum.load(Ordering::Relaxed);
        let new = (sum - sum / WEIGHT).saturating_add(took);
        self.sum.store(new, Ordering::Relaxed);
    }

    /// The mean, 0 before the first change.
    #[must_use]
    pub fn mean(&self) -> Ticks {
        Ticks::new(self.sum.load(Ordering::Relaxed) / WEIGHT)
    }

    /// What two changes take.
    #[must_use]
    pub fn there_and_back(&self) -> Ticks {
        self.mean() + self.mean()
    }
}

/// A vCPU's luck with its looks: from 0, none lately, to this.
const MOST_LUCK: u8 = 8;

/// One that has had none looks only so often: once in so many spins.
const TRIAL: u8 = 16;

/// Whether the looks of one vCPU come to anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    luck: u8,
    left_out: u8,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            luck: MOST_LUCK / 2,
            left_out: 0,
        }
    }
}

impl Looks {
    /// Whether to look this time.
    pub fn try_again(&mut self) -> bool {
        if self.luck > 0 {
            return true;
        }
        self.left_out = (self.left_out + 1) % TRIAL;
        self.left_out == 0
    }

    /// A look has ended: what was waited for has come, or not.
    pub fn end(&mut self, has_come: bool) {
        self.luck = match has_come {
            true => (self.luck + 1).min(MOST_LUCK),
            false => self.luck.saturating_sub(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_luck_seldom_looks_and_finds_out_when_that_changes() {
        let mut looks = Looks::default();
        let mut made = 0;
        for _ in 0..1600 {
            if looks.try_again() {
                made += 1;
                looks.end(false);
            }
        }
        assert!((90..=110).contains(&made), "{made} of 1600");
        let mut made = 0;
        for _ in 0..1600 {
            if looks.try_again() {
                made += 1;
                looks.end(true);
            }
        }
        assert!(made > 1500, "{made} of 1600");
        looks.end(false);
        assert!(looks.try_again(), "one that fails is no rule");
    }

    fn change(cost: &ChangeCost, took: u64) {
        cost.leave(Ticks::new(1000));
        cost.enter(Ticks::new(1000 + took));
    }

    #[test]
    fn the_mean_comes_to_what_changes_take() {
        let cost = ChangeCost::default();
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
    fn a_rest_is_no_part_of_a_change() {
        let cost = ChangeCost::default();
        cost.leave(Ticks::new(10));
        cost.rest();
        cost.enter(Ticks::new(1_000_000));
        cost.enter(Ticks::new(2_000_000));
        assert_eq!(cost.mean(), Ticks::ZERO);
    }

    #[test]
    fn no_time_overflows() {
        let cost = ChangeCost::default();
        for _ in 0..100 {
            cost.leave(Ticks::ZERO);
            cost.enter(Ticks::new(u64::MAX - 1));
            cost.leave(Ticks::new(u64::MAX - 1));
            cost.enter(Ticks::ZERO);
        }
    }
}
