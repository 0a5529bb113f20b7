//! A set-associative store of line numbers with round-robin replacement.

use serde::{Deserialize, Serialize};

use super::round_robin::RoundRobin;
use crate::profile::Geometry;

const EMPTY: u64 = u64::MAX;
/// The mark of an entry that no other hart's cache holds.
const EXCLUSIVE: u64 = 1 << 63;

/// A line that is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Where; until the line goes.
    pub position: usize,
    /// True if no other hart's cache holds it.
    pub exclusive: bool,
}

/// Which lines are present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    geometry: Geometry,
    entries: Vec<u64>,
    next: RoundRobin,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        let geometry = Geometry {
            sets: geometry.sets.next_power_of_two(),
            ways: geometry.ways.clamp(1, 255),
        };
        Self {
            geometry,
            entries: vec![EMPTY; geometry.sets * geometry.ways],
            next: RoundRobin::new(geometry.sets),
        }
    }

    /// Tests whether it is of this size, and whole.
    #[must_use]
    pub fn is_of(&self, geometry: Geometry) -> bool {
        self.geometry == geometry
            && Some(self.entries.len()) == geometry.sets.checked_mul(geometry.ways)
            && self.next.is_of(geometry.sets)
    }

    /// Size.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn set(&self, line: u64) -> usize {
        (line & (self.geometry.sets as u64 - 1)) as usize
    }

    fn position(&self, line: u64) -> Option<usize> {
        let start = self.set(line) * self.geometry.ways;
        let ways = self.entries.get(start..start + self.geometry.ways)?;
        // No line has all bits set, as an empty place has.
        let way = ways.iter().position(|&e| e & !EXCLUSIVE == line)?;
        Some(start + way)
    }

    /// Where a line is, and whether it is exclusive, if it is present.
    #[must_use]
    pub fn find(&self, line: u64) -> Option<Found> {
        let position = self.position(line)?;
        self.entries.get(position).map(|entry| Found {
            position,
            exclusive: entry & EXCLUSIVE != 0,
        })
    }

    /// Adds a line that is not present, in an empty place of its set if there is one, else in that
    /// of the line whose turn it is; gives the position, and that line.
    pub fn insert(&mut self, line: u64) -> (usize, Option<u64>) {
        let set = self.set(line);
        let start = set * self.geometry.ways;
        let ways = &mut self.entries[start..start + self.geometry.ways];
        if let Some(way) = ways.iter().position(|&entry| entry == EMPTY) {
            ways[way] = line;
            return (start + way, None);
        }
        let way = self.next.replace(set, self.geometry.ways);
        let old = std::mem::replace(&mut ways[way], line);
        (start + way, Some(old & !EXCLUSIVE))
    }

    /// Marks the line at a position exclusive or shared.
    pub fn set_exclusive(&mut self, position: usize, exclusive: bool) {
        if let Some(entry) = self.entries.get_mut(position) {
            *entry = *entry & !EXCLUSIVE | if exclusive { EXCLUSIVE } else { 0 };
        }
    }

    /// Removes the line at a position.
    pub fn remove(&mut self, position: usize) {
        if let Some(entry) = self.entries.get_mut(position) {
            *entry = EMPTY;
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclusive(cache: &Cache, line: u64) -> Option<bool> {
        cache.find(line).map(|found| found.exclusive)
    }

    #[test]
    fn full_sets_replace_their_oldest_line() {
        let mut cache = Cache::new(Geometry { sets: 2, ways: 2 });
        assert_eq!(cache.insert(0).1, None);
        assert_eq!(cache.insert(2).1, None);
        assert_eq!(cache.insert(1).1, None);
        assert_eq!(cache.insert(4).1, Some(0));
        assert_eq!(
            (
                exclusive(&cache, 0),
                exclusive(&cache, 2),
                exclusive(&cache, 1)
            ),
            (None, Some(false), Some(false))
        );
    }

    #[test]
    fn exclusiveness_is_part_of_a_line() {
        let mut cache = Cache::new(Geometry { sets: 1, ways: 1 });
        let (position, _) = cache.insert(7);
        cache.set_exclusive(position, true);
        assert_eq!(exclusive(&cache, 7), Some(true));
        assert_eq!(cache.insert(8), (position, Some(7)));
        assert_eq!(exclusive(&cache, 8), Some(false));
    }
}
