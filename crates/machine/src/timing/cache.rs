//! A set-associative store of line numbers with round-robin replacement.

use serde::{Deserialize, Serialize};

/// Size of a [`Cache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Number of sets, a power of two.
    pub sets: usize,
    /// Entries of a set.
    pub ways: usize,
}

const EMPTY: u64 = u64::MAX;
/// The mark of an entry that no other hart's cache holds.
const EXCLUSIVE: u64 = 1 << 63;

/// Which lines are present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    geometry: Geometry,
    entries: Vec<u64>,
    next: Vec<u8>,
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
            next: vec![0; geometry.sets],
        }
    }

    /// Whether it is of this size, and whole.
    #[must_use]
    pub fn is_of(&self, geometry: Geometry) -> bool {
        self.geometry == geometry
            && Some(self.entries.len()) == geometry.sets.checked_mul(geometry.ways)
            && self.next.len() == geometry.sets
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
        let way = ways
            .iter()
            .position(|&e| e != EMPTY && e & !EXCLUSIVE == line)?;
        Some(start + way)
    }

    /// Whether a line is present, and if so whether it is exclusive.
    #[must_use]
    pub fn find(&self, line: u64) -> Option<bool> {
        let position = self.position(line)?;
        self.entries
            .get(position)
            .map(|entry| entry & EXCLUSIVE != 0)
    }

    /// Adds a line that is not present, in an empty place of its set if there is one, else in that
    /// of the line whose turn it is; gives that line.
    pub fn insert(&mut self, line: u64) -> Option<u64> {
        let set = self.set(line);
        let start = set * self.geometry.ways;
        let ways = self.entries.get_mut(start..start + self.geometry.ways)?;
        if let Some(empty) = ways.iter_mut().find(|entry| **entry == EMPTY) {
            *empty = line;
            return None;
        }
        let turn = self.next.get_mut(set)?;
        let way = usize::from(*turn) % self.geometry.ways;
        *turn = ((way + 1) % self.geometry.ways) as u8;
        let old = std::mem::replace(ways.get_mut(way)?, line);
        Some(old & !EXCLUSIVE)
    }

    /// Marks a present line exclusive or shared.
    pub fn set_exclusive(&mut self, line: u64, exclusive: bool) {
        if let Some(position) = self.position(line)
            && let Some(entry) = self.entries.get_mut(position)
        {
            *entry = line | if exclusive { EXCLUSIVE } else { 0 };
        }
    }

    /// Removes a line.
    pub fn remove(&mut self, line: u64) {
        if let Some(position) = self.position(line)
            && let Some(entry) = self.entries.get_mut(position)
        {
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

    #[test]
    fn the_oldest_line_of_a_full_set_goes() {
        let mut cache = Cache::new(Geometry { sets: 2, ways: 2 });
        assert_eq!(cache.insert(0), None);
        assert_eq!(cache.insert(2), None);
        assert_eq!(cache.insert(1), None);
        assert_eq!(cache.insert(4), Some(0));
        assert_eq!(
            (cache.find(0), cache.find(2), cache.find(1)),
            (None, Some(false), Some(false))
        );
    }

    #[test]
    fn exclusiveness_is_part_of_a_line() {
        let mut cache = Cache::new(Geometry { sets: 1, ways: 1 });
        cache.insert(7);
        cache.set_exclusive(7, true);
        assert_eq!(cache.find(7), Some(true));
        assert_eq!(cache.insert(8), Some(7));
    }
}
