//! A set-associative store of line numbers.

use serde::{Deserialize, Serialize};

use super::replacement::Replacement;
use crate::profile::{Geometry, ReplacementPolicy};

const EMPTY: u64 = u64::MAX;

/// Marks of an entry, in the bits that no line number has.
mod mark {
    /// No other hart's cache holds it.
    pub const EXCLUSIVE: u64 = 1 << 63;
    /// Memory does not have its bytes.
    pub const DIRTY: u64 = 1 << 62;
    /// It may still be on its way.
    pub const ARRIVING: u64 = 1 << 61;
    /// A prefetcher has asked for it, and nothing else has yet.
    pub const PREFETCHED: u64 = 1 << 60;
    pub const ALL: u64 = EXCLUSIVE | DIRTY | ARRIVING | PREFETCHED;
}

/// A line that is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Where; until the line goes.
    pub position: usize,
    /// True if no other hart's cache holds it.
    pub exclusive: bool,
    /// True if memory does not have its bytes.
    pub dirty: bool,
    /// True if it may still be on its way.
    pub arriving: bool,
    /// True if a prefetcher has asked for it, and nothing else has yet.
    pub prefetched: bool,
}

/// A line that has had to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evicted {
    /// Its number.
    pub line: u64,
    /// True if memory does not have its bytes.
    pub dirty: bool,
}

/// Which lines are present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    geometry: Geometry,
    entries: Vec<u64>,
    replacement: Replacement,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(geometry: Geometry, policy: ReplacementPolicy) -> Self {
        let geometry = Geometry {
            sets: geometry.sets.next_power_of_two(),
            ways: geometry.ways.clamp(1, 255),
        };
        Self {
            geometry,
            entries: vec![EMPTY; geometry.sets * geometry.ways],
            replacement: Replacement::new(policy, geometry),
        }
    }

    /// Tests whether it is of this size and policy, and whole.
    #[must_use]
    pub fn is_of(&self, geometry: Geometry, policy: ReplacementPolicy) -> bool {
        self.geometry == geometry
            && Some(self.entries.len()) == geometry.sets.checked_mul(geometry.ways)
            && self.replacement.is_of(policy, geometry)
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
        let way = ways.iter().position(|&e| e & !mark::ALL == line)?;
        Some(start + way)
    }

    /// Where a line is, and its marks, if it is present.
    #[must_use]
    pub fn find(&self, line: u64) -> Option<Found> {
        let position = self.position(line)?;
        self.entries.get(position).map(|entry| Found {
            position,
            exclusive: entry & mark::EXCLUSIVE != 0,
            dirty: entry & mark::DIRTY != 0,
            arriving: entry & mark::ARRIVING != 0,
            prefetched: entry & mark::PREFETCHED != 0,
        })
    }

    /// The line at a position is used. Calls `demoted` with each line whose next use may change something again.
    #[inline]
    pub fn touch(&mut self, position: usize, mut demoted: impl FnMut(u64)) {
        let ways = self.geometry.ways;
        let (set, way) = (position / ways, position % ways);
        let entries = &self.entries;
        self.replacement.touch(set, way, |way| {
            if let Some(&entry) = entries.get(set * ways + way).filter(|&&e| e != EMPTY) {
                demoted(entry & !mark::ALL);
            }
        });
    }

    /// Finds a line and uses it: where filters do not answer for the cache.
    pub fn look_up(&mut self, line: u64) -> Option<Found> {
        let found = self.find(line)?;
        self.touch(found.position, |_| {});
        Some(found)
    }

    /// Adds a line that is not present, in an empty place of its set if there is one, else in that
    /// of the line that has to go; gives the position, and that line.
    pub fn insert(&mut self, line: u64, demoted: impl FnMut(u64)) -> (usize, Option<Evicted>) {
        let set = self.set(line);
        let start = set * self.geometry.ways;
        let ways = &self.entries[start..start + self.geometry.ways];
        let empty = ways.iter().position(|&entry| entry == EMPTY);
        let way = empty.unwrap_or_else(|| self.replacement.victim(set));
        let old = std::mem::replace(&mut self.entries[start + way], line);
        self.touch(start + way, demoted);
        let evicted = (old != EMPTY).then_some(Evicted {
            line: old & !mark::ALL,
            dirty: old & mark::DIRTY != 0,
        });
        (start + way, evicted)
    }

    fn set_mark(&mut self, position: usize, mark: u64, on: bool) {
        if let Some(entry) = self.entries.get_mut(position)
            && *entry != EMPTY
        {
            *entry = *entry & !mark | if on { mark } else { 0 };
        }
    }

    /// Marks the line at a position exclusive or shared.
    pub fn set_exclusive(&mut self, position: usize, exclusive: bool) {
        self.set_mark(position, mark::EXCLUSIVE, exclusive);
    }

    /// Marks the line at a position as one whose bytes memory lacks, or has.
    pub fn set_dirty(&mut self, position: usize, dirty: bool) {
        self.set_mark(position, mark::DIRTY, dirty);
    }

    /// Marks the line at a position as one that may be on its way, or is there.
    pub fn set_arriving(&mut self, position: usize, arriving: bool) {
        self.set_mark(position, mark::ARRIVING, arriving);
    }

    /// Marks the line at a position as one that a prefetcher alone has asked for, or not.
    pub fn set_prefetched(&mut self, position: usize, prefetched: bool) {
        self.set_mark(position, mark::PREFETCHED, prefetched);
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

    fn cache(sets: usize, ways: usize) -> Cache {
        Cache::new(Geometry { sets, ways }, ReplacementPolicy::Fifo)
    }

    fn exclusive(cache: &Cache, line: u64) -> Option<bool> {
        cache.find(line).map(|found| found.exclusive)
    }

    fn insert(cache: &mut Cache, line: u64) -> Option<u64> {
        let (_, evicted) = cache.insert(line, |_| {});
        evicted.map(|evicted| evicted.line)
    }

    #[test]
    fn full_sets_replace_their_oldest_line() {
        let mut cache = cache(2, 2);
        assert_eq!(insert(&mut cache, 0), None);
        assert_eq!(insert(&mut cache, 2), None);
        assert_eq!(insert(&mut cache, 1), None);
        assert_eq!(insert(&mut cache, 4), Some(0));
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
    fn used_lines_stay_by_lru() {
        let mut cache = Cache::new(Geometry { sets: 1, ways: 2 }, ReplacementPolicy::Lru);
        insert(&mut cache, 5);
        insert(&mut cache, 6);
        let mut demoted = Vec::new();
        let position = cache.find(5).expect("there").position;
        cache.touch(position, |line| demoted.push(line));
        assert_eq!(demoted, [6]);
        assert_eq!(insert(&mut cache, 7), Some(6));
    }

    #[test]
    fn marks_are_part_of_a_line() {
        let mut cache = cache(1, 1);
        let (position, _) = cache.insert(7, |_| {});
        cache.set_exclusive(position, true);
        cache.set_dirty(position, true);
        cache.set_arriving(position, true);
        cache.set_prefetched(position, true);
        let found = Found {
            position,
            exclusive: true,
            dirty: true,
            arriving: true,
            prefetched: true,
        };
        assert_eq!(cache.find(7), Some(found));
        let old = Evicted {
            line: 7,
            dirty: true,
        };
        assert_eq!(cache.insert(8, |_| {}), (position, Some(old)));
        let found = Found {
            exclusive: false,
            dirty: false,
            arriving: false,
            prefetched: false,
            ..found
        };
        assert_eq!(cache.find(8), Some(found));
    }
}
