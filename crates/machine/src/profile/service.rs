//! How long devices take and how they fail, as a profile describes it.

use serde::{Deserialize, Serialize};

use crate::base::Random;

/// A device's service time: what one request occupies it for.
///
/// `fixed + bytes × per byte + seek`, where the seek is drawn evenly from its range, and is
/// nothing for a request that goes on where the last one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Service {
    /// Nanoseconds a request.
    pub fixed_nanoseconds: u64,
    /// Picoseconds a byte: 8000 is a line of 1 Gbit/s.
    pub picoseconds_per_byte: u64,
    /// The shortest seek in nanoseconds.
    pub shortest_seek_nanoseconds: u64,
    /// The longest seek in nanoseconds.
    pub longest_seek_nanoseconds: u64,
    /// How many requests are in service at once; the others wait their turn.
    pub queue_depth: u32,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            fixed_nanoseconds: 0,
            picoseconds_per_byte: 0,
            shortest_seek_nanoseconds: 0,
            longest_seek_nanoseconds: 0,
            queue_depth: 1,
        }
    }
}

/// When something goes wrong: at given requests, and at random.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chance {
    /// Requests in a million, drawn from the seed.
    pub per_million: u32,
    /// Numbers of requests, counted from zero as the device takes them.
    pub at: Vec<u64>,
}

impl Chance {
    pub(crate) fn strikes(&self, request: u64, random: &mut Random) -> bool {
        let drawn = self.per_million != 0 && random.below(1_000_000) < u64::from(self.per_million);
        drawn || self.at.contains(&request)
    }
}

/// Injected faults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Requests that fail: the papers' unit checks.
    pub errors: Chance,
    /// Reads that break off half way and fail.
    pub short: Chance,
    /// Interrupts that never come.
    pub lost_interrupts: Chance,
    /// Interrupts that come late.
    pub late_interrupts: Chance,
    /// How late, in nanoseconds.
    pub late_nanoseconds: u64,
}
