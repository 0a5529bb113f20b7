//! Whose operation a disk begins next: start-time fair queueing with several operations under way (SFQ(D): Jin, Chase and Kaur,
//! "Interposed proportional sharing for a storage service utility", 2004).
//!
//! Each operation has a start on a virtual clock: that of its arrival, or the end of its slice's operation before it, if that is later. An
//! operation ends so much after its start as it costs, divided by the share. The earliest start is begun first, and sets the clock. So slices
//! that always have something to do get work in proportion to their shares, and one that seldom has gets its turn at once, but
//! cannot save up for later.

use alloc::vec::Vec;

/// What an operation costs besides its sectors, in sectors: what a disk of today needs for an operation whatever its length, roughly.
const OPERATION: u64 = 8;
/// Virtual time of a sector with share 1. Shares reach 10,000, which leaves three digits.
const SECTOR: u64 = 1 << 24;

/// When an operation starts, on the virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start(u64);

/// The virtual clock, and where each slice is on it.
#[derive(Debug, Default)]
pub struct Fair {
    now: u64,
    /// The share of each slice, and the end of its last operation.
    slices: Vec<(u32, u64)>,
}

impl Fair {
    /// Adds a slice.
    pub fn add(&mut self, share: u32) {
        self.slices.push((share.max(1), 0));
    }

    /// An operation of so many sectors has arrived.
    pub fn arrives(&mut self, slice: usize, sectors: u64) -> Start {
        let Some((share, last)) = self.slices.get_mut(slice) else {
            return Start(self.now);
        };
        let start = self.now.max(*last);
        let cost = sectors.saturating_add(OPERATION).saturating_mul(SECTOR);
        *last = start.saturating_add(cost / u64::from(*share));
        Start(start)
    }

    /// An operation is begun.
    pub const fn begins(&mut self, start: Start) {
        if self.now < start.0 {
            self.now = start.0;
        }
    }
}
