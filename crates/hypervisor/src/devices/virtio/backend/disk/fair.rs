//! The slice that begins its next operation: fair queueing of a disk's time with several operations in flight (SFQ(D): Jin, Chase and Kaur,
//! "Interposed proportional sharing for a storage service utility", 2004).
//!
//! Each slice has a virtual time: the disk's time that its operations took, divided by its share. The slice with the least begins next. An
//! operation is charged an estimate when it begins and its time when it completes. A slice that was idle continues at the virtual time of the
//! others, so that it gets its turn at once but cannot save up for later.

use alloc::vec::Vec;

/// Sectors of an operation: 128 KiB. Slices split longer requests.
pub const MAX_SECTORS: u64 = 256;

/// Cost of an operation besides its sectors, in sectors: what a disk of today needs for an operation whatever its length, roughly.
const OPERATION: u64 = 8;
/// Virtual time of a tick with share 1. Shares reach 10,000, which leaves two digits.
const TICK: u128 = 1 << 20;
/// Bits behind the point of a rate, and the weight of a new measurement: one in `1 << SMOOTHING`.
const FRACTION: u32 = 16;
const SMOOTHING: u32 = 3;

/// Work of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Sectors that are read or written.
    Sectors(u64),
    Flush,
}

impl Work {
    /// Sectors that the work counts as: a flush as a long operation.
    #[must_use]
    pub const fn sectors(self) -> u64 {
        match self {
            Self::Sectors(sectors) => sectors,
            Self::Flush => MAX_SECTORS,
        }
    }
}

/// Work of an operation, and what its slice was charged when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    pub work: Work,
    pub estimate: u64,
    pub began: u64,
}

impl Charged {
    /// No charge yet.
    pub const NONE: Self = Self {
        work: Work::Flush,
        estimate: 0,
        began: 0,
    };
}

/// Virtual clock, account of each slice, and measured rate of the work.
#[derive(Debug, Default)]
pub struct Fair {
    now: u128,
    slices: Vec<Account>,
    /// Ticks of a unit of work, with [`FRACTION`] bits, and of a flush, once they were measured.
    rate: Option<u64>,
    flush: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    share: u32,
    time: u128,
}

impl Fair {
    /// Adds a slice.
    pub fn add(&mut self, share: u32) {
        self.slices.push(Account {
            share: share.max(1),
            time: 0,
        });
    }

    /// Virtual time of a slice.
    #[must_use]
    pub fn time(&self, slice: usize) -> u128 {
        self.slices.get(slice).map_or(0, |account| account.time)
    }

    /// Moves an idle slice that has a request now to the virtual time of the others.
    pub fn activate(&mut self, slice: usize) {
        if let Some(account) = self.slices.get_mut(slice) {
            account.time = account.time.max(self.now);
        }
    }

    /// Returns true if a slice is ahead of a virtual time by more than this work.
    #[must_use]
    pub fn is_ahead(&self, slice: usize, time: u128, by: Work) -> bool {
        let Some(account) = self.slices.get(slice) else {
            return false;
        };
        account.time > time + virtual_time(self.estimate(by), account.share)
    }

    /// Ticks that the work will take, as far as is known.
    #[must_use]
    pub fn estimate(&self, work: Work) -> u64 {
        if let (Work::Flush, Some(flush)) = (work, self.flush) {
            return flush;
        }
        let units = work.sectors().saturating_add(OPERATION);
        let rate = self.rate.unwrap_or(1 << FRACTION);
        (units.saturating_mul(rate) >> FRACTION).max(1)
    }

    /// Begins an operation of a slice, which is charged its estimate.
    pub fn begins(&mut self, slice: usize, estimate: u64) {
        if let Some(account) = self.slices.get_mut(slice) {
            self.now = self.now.max(account.time);
            account.time += virtual_time(estimate, account.share);
        }
    }

    /// Charges an operation's time in place of its estimate.
    pub fn ends(&mut self, slice: usize, estimate: u64, took: u64) {
        if let Some(account) = self.slices.get_mut(slice) {
            let time = account.time + virtual_time(took, account.share);
            account.time = time.saturating_sub(virtual_time(estimate, account.share));
        }
    }

    /// Adapts the rate to the time that work took. Operations that complete together count together: `units` is the sum of their [units](Self::units).
    pub fn learn(&mut self, units: u64, took: u64) {
        let took = took.min(u64::MAX >> FRACTION) << FRACTION;
        if let Some(measured) = took.checked_div(units) {
            self.rate = Some(smooth(self.rate, measured).max(1));
        }
    }

    /// Adapts the rate to the time of a flush.
    pub fn learn_flush(&mut self, took: u64) {
        self.flush = Some(smooth(self.flush, took));
    }

    /// Units of the work; none of a flush.
    #[must_use]
    pub const fn units(work: Work) -> u64 {
        match work {
            Work::Sectors(sectors) => sectors.saturating_add(OPERATION),
            Work::Flush => 0,
        }
    }
}

fn virtual_time(ticks: u64, share: u32) -> u128 {
    u128::from(ticks) * TICK / u128::from(share)
}

fn smooth(known: Option<u64>, measured: u64) -> u64 {
    let known = known.unwrap_or(measured);
    (known - (known >> SMOOTHING)).saturating_add(measured >> SMOOTHING)
}
