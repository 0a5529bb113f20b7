//! Time in ticks.

use core::ops::{Add, Sub};

/// A point in time or a length of time, in ticks of the platform's `time` counter.
///
/// Arithmetic saturates: a clock that a caller reads late can make a length zero, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(u64);

impl Ticks {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Time of this number of ticks.
    #[must_use]
    pub const fn new(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Number of ticks.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Ticks as a signed number, for accounts that may be overdrawn.
    pub(crate) const fn signed(self) -> i64 {
        if self.0 > i64::MAX as u64 {
            i64::MAX
        } else {
            self.0 as i64
        }
    }
}

impl Add for Ticks {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Ticks {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
