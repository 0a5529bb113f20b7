//! Counts of the first-level data caches that may have a line.

use serde::{Deserialize, Serialize};

use super::Geometry;

/// How many first-level data caches may have a line, for all lines that agree in their low bits:
/// as long as it is zero, nobody has to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Presence {
    counts: Vec<u32>,
}

impl Presence {
    /// Slots for each set of a cache, at least.
    const SPREAD: usize = 64;

    const fn slots(geometry: Geometry) -> usize {
        geometry.sets * Self::SPREAD
    }

    pub fn new(geometry: Geometry) -> Self {
        Self {
            counts: vec![0; Self::slots(geometry)],
        }
    }

    pub fn is_of(&self, geometry: Geometry) -> bool {
        self.counts.len() == Self::slots(geometry)
    }

    const fn index(&self, line: u64) -> usize {
        line as usize & (self.counts.len().wrapping_sub(1))
    }

    fn slot(&mut self, line: u64) -> Option<&mut u32> {
        let index = self.index(line);
        self.counts.get_mut(index)
    }

    pub fn add(&mut self, line: u64) {
        if let Some(count) = self.slot(line) {
            *count = count.saturating_add(1);
        }
    }

    pub fn remove(&mut self, line: u64) {
        if let Some(count) = self.slot(line) {
            *count = count.saturating_sub(1);
        }
    }

    pub fn of(&self, line: u64) -> u32 {
        self.counts.get(self.index(line)).copied().unwrap_or(0)
    }
}
