//! Round-robin replacement.

use serde::{Deserialize, Serialize};

/// For each set of a structure the way that is replaced next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct RoundRobin(Vec<u8>);

impl RoundRobin {
    /// The first way of every set.
    pub fn new(sets: usize) -> Self {
        Self(vec![0; sets])
    }

    /// Tests whether there are so many sets.
    pub fn is_of(&self, sets: usize) -> bool {
        self.0.len() == sets
    }

    /// The way to replace in a set of so many.
    pub fn replace(&mut self, set: usize, ways: usize) -> usize {
        let next = &mut self.0[set];
        let way = usize::from(*next) % ways;
        *next = ((way + 1) % ways) as u8;
        way
    }
}
