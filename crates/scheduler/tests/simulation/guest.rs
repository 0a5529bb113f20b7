//! Guests of the simulation, and the chance that decides their actions.

use splitmix::SplitMix64;

/// Numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// Next action of a vCPU that has run for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Wait,
    Spin,
    SpinOnWord,
    SpinForTurn,
    Yield,
    Stop,
}

/// Behaviour of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    CpuBound,
    /// Runs for up to so many ticks, then does one of the acts.
    Bursts {
        longest: u64,
        acts: &'static [Act],
    },
}

impl Act {
    /// Acts of a guest that it repeats: it does not stop.
    pub const EVERY: &[Self] = &[
        Self::Wait,
        Self::Wait,
        Self::Spin,
        Self::SpinOnWord,
        Self::SpinForTurn,
        Self::Yield,
    ];
}
