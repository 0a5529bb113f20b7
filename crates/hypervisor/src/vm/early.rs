//! Whether it pays that the vCPUs of a VM get harts a turn before their own at ticket locks.
//!
//! A waiter that has a hart when its turn comes saves the lock a change of vCPU. A hart that is given for that keeps two partners on harts at the same
//! time, and they get in each other's way more often. Which counts for more depends on the guest, so it is tried: over so many waits, the part
//! of the harts' time for the VM that went to its guest tells one way from the other.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::lock::{Mutex, place};

/// So many waits are compared with so many.
const EPOCH: u32 = 256;

/// The other way is tried after at most so many epochs.
const LONGEST_STAY: u32 = 16;

/// The other way is taken if it is better by this part of what is known.
const BETTER: u64 = 64;

/// Time for a VM: that of its guest, and all, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub guest: u64,
    pub all: u64,
}

/// What is tried, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The way that is the better as far as is known, and the one of this epoch.
    chosen: bool,
    now: bool,
    /// Epochs until the other way is tried, and how many there will be then.
    left: u32,
    stay: u32,
    begun: Spent,
    /// How much of the time was the guest's in the last epoch of the chosen way.
    known: u64,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            chosen: false,
            now: false,
            left: 1,
            stay: 1,
            begun: Spent::default(),
            known: 0,
        }
    }
}

impl Trial {
    /// An epoch has ended, up to which this was spent. Returns the way of the next one.
    pub fn end(&mut self, spent: Spent) -> bool {
        let guest = spent.guest.wrapping_sub(self.begun.guest);
        let all = spent.all.wrapping_sub(self.begun.all);
        self.begun = spent;
        let part = (guest >> 4 << 16).checked_div(all >> 4).unwrap_or(0);
        if self.now == self.chosen {
            self.known = part;
            self.left -= 1;
            if self.left == 0 {
                self.now = !self.chosen;
            }
        } else {
            if part > self.known + self.known / BETTER {
                self.chosen = self.now;
                self.stay = 1;
            } else {
                self.stay = (self.stay * 2).min(LONGEST_STAY);
            }
            self.now = self.chosen;
            self.left = self.stay;
        }
        self.now
    }
}

/// The trials of one VM.
#[derive(Debug, Default)]
pub struct EarlyTurns {
    early: AtomicBool,
    waits: AtomicU32,
    trial: Mutex<Trial, { place::TURNS }>,
}

impl EarlyTurns {
    /// A vCPU begins to wait for its turn. Returns whether it is to get a hart a turn early. `spent` sums up what was spent for the VM.
    pub fn wait(&self, spent: impl FnOnce() -> Spent) -> bool {
        if self.waits.fetch_add(1, Ordering::Relaxed) + 1 == EPOCH {
            let next = self.trial.lock().end(spent());
            self.early.store(next, Ordering::Relaxed);
            self.waits.store(0, Ordering::Relaxed);
        }
        self.early.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of epochs of 1,000,000 cycles, of which so many per cent are the guest's one way and the other. Returns in how many of 400 turns are taken early.
    fn early(late_way: u64, early_way: u64) -> u32 {
        let mut trial = Trial::default();
        let mut spent = Spent::default();
        let mut now = false;
        let mut count = 0;
        for _ in 0..400 {
            count += u32::from(now);
            let percent = if now { early_way } else { late_way };
            spent.guest = spent.guest.wrapping_add(percent * 10_000);
            spent.all = spent.all.wrapping_add(1_000_000);
            now = trial.end(spent);
        }
        count
    }

    #[test]
    fn the_better_way_is_taken_and_the_other_tried_now_and_then() {
        let count = early(40, 60);
        assert!((360..400).contains(&count), "{count}");
        let count = early(60, 40);
        assert!((15..40).contains(&count), "{count}");
    }

    #[test]
    fn where_neither_is_better_turns_are_not_taken_early() {
        assert!(early(50, 50) < 40);
        assert!(early(0, 0) < 40);
    }

    #[test]
    fn a_guest_that_changes_is_found_out() {
        let mut trial = Trial::default();
        let mut spent = Spent::default();
        let mut now = false;
        let mut last = [0; 2];
        for (part, last) in [(60, 40), (40, 60)].into_iter().zip(&mut last) {
            for epoch in 0..200 {
                let percent = if now { part.0 } else { part.1 };
                spent.guest += percent * 10_000;
                spent.all += 1_000_000;
                now = trial.end(spent);
                *last += u32::from(now && epoch >= 100);
            }
        }
        assert!(last[0] > 90 && last[1] < 10, "{last:?}");
    }

    #[test]
    fn epochs_are_of_so_many_waits_and_counters_may_wrap() {
        let turns = EarlyTurns::default();
        let mut sums = 0;
        for wait in 0..EPOCH * 8 {
            let _ = turns.wait(|| {
                sums += 1;
                Spent {
                    guest: u64::MAX - 3,
                    all: u64::from(wait).wrapping_sub(5),
                }
            });
        }
        assert_eq!(sums, 8);
    }
}
