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
