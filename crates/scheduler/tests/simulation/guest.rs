//! Guests of the simulation, and the chance that decides their actions.

/// Numbers that a seed determines (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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
