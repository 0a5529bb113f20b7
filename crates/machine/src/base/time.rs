//! Machine time.

use serde::{Deserialize, Serialize};

/// A point in, or a length of, machine time, in cycles of the harts' clock since reset.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Cycles(pub u64);

impl Cycles {
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// This time moved `later` cycles on; stays at [`Cycles::NEVER`] instead of wrapping.
    #[must_use]
    pub const fn after(self, later: Self) -> Self {
        Self(self.0.saturating_add(later.0))
    }
}

/// How cycles, `time` ticks and nanoseconds relate. All conversions are exact integer arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    cycles_per_second: u64,
    ticks_per_second: u64,
}

impl Clock {
    /// A clock with the harts at `cycles_per_second` hertz and the `time` CSR (timebase-frequency)
    /// at `ticks_per_second` hertz. Zero is taken as one.
    #[must_use]
    pub fn new(cycles_per_second: u64, ticks_per_second: u64) -> Self {
        Self {
            cycles_per_second: cycles_per_second.max(1),
            ticks_per_second: ticks_per_second.max(1),
        }
    }

    /// The harts' frequency in hertz.
    #[must_use]
    pub const fn cycles_per_second(&self) -> u64 {
        self.cycles_per_second
    }

    /// The frequency of `time` in hertz, the device tree's `timebase-frequency`.
    #[must_use]
    pub const fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    /// Whole ticks that have passed at `now`.
    #[must_use]
    pub fn ticks(&self, now: Cycles) -> u64 {
        scale(now.0, self.ticks_per_second, self.cycles_per_second)
    }

    /// The first machine time at which [`Clock::ticks`] is at least `ticks`.
    #[must_use]
    pub fn cycles_at(&self, ticks: u64) -> Cycles {
        let product = u128::from(ticks) * u128::from(self.cycles_per_second);
        let cycles = product.div_ceil(u128::from(self.ticks_per_second));
        Cycles(u64::try_from(cycles).unwrap_or(u64::MAX))
    }

    /// Whole nanoseconds that have passed at `now`.
    #[must_use]
    pub fn nanoseconds(&self, now: Cycles) -> u64 {
        scale(now.0, 1_000_000_000, self.cycles_per_second)
    }

    /// The number of cycles, rounded up, in a length of `nanoseconds`.
    #[must_use]
    pub fn cycles_in_nanoseconds(&self, nanoseconds: u64) -> Cycles {
        let product = u128::from(nanoseconds) * u128::from(self.cycles_per_second);
        Cycles(u64::try_from(product.div_ceil(1_000_000_000)).unwrap_or(u64::MAX))
    }
}

/// `value * numerator / denominator`, rounded down, saturating.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator);
    u64::try_from(product / u128::from(denominator)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_begin_at_their_first_cycle() {
        for (hertz, timebase) in [
            (1_000_000_000, 10_000_000),
            (2_400_000_000, 24_000_001),
            (3, 7),
        ] {
            let clock = Clock::new(hertz, timebase);
            for ticks in [1, 2, 999, 123_456_789] {
                let first = clock.cycles_at(ticks);
                assert!(clock.ticks(first) >= ticks);
                assert!(clock.ticks(Cycles(first.0 - 1)) < ticks);
            }
        }
    }

    #[test]
    fn the_end_of_time_saturates() {
        let clock = Clock::new(u64::MAX, 1);
        assert_eq!(clock.cycles_at(u64::MAX), Cycles::NEVER);
        assert_eq!(Cycles(5).after(Cycles::NEVER), Cycles::NEVER);
    }
}
