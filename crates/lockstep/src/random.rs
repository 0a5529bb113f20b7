//! Random numbers that are the same on every host.

use splitmix::SplitMix64;

/// Draws from the numbers that a seed determines.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// The numbers of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Sixty-four random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `end`, which is not zero.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// A number below `end` as an index.
    pub const fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    /// As [`Random::below`] for the fields of instructions.
    pub const fn field(&mut self, end: u32) -> u32 {
        self.below(end as u64) as u32
    }

    /// `true` in `percent` of a hundred cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// A value of the kind that finds mistakes: small, next to a power of two, sparse, or anything.
    pub fn value(&mut self) -> u64 {
        let bits = self.bits();
        match self.below(6) {
            0 => self.below(17).wrapping_sub(8),
            1 => (1_u64 << self.below(64)).wrapping_add(self.below(3).wrapping_sub(1)),
            2 => bits & self.bits() & self.bits(),
            3 => ((bits as i32) as i64).cast_unsigned(),
            _ => bits,
        }
    }
}
