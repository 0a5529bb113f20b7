//! Harts that wait for a store to their reservation set.

use serde::{Deserialize, Serialize};

use crate::base::{HartId, LINE_BYTES, PAGE_BYTES};

/// One hart that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The waiting hart.
    pub hart: HartId,
    /// Physical address of the reservation set.
    pub line: u64,
    /// True if a store has hit it.
    pub hit: bool,
}

/// The harts that wait for a store: at most one entry a hart.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Watches {
    entries: Vec<Watch>,
}

impl Watches {
    /// Starts watching.
    pub fn insert(&mut self, hart: HartId, line: u64) {
        self.remove(hart);
        self.entries.push(Watch {
            hart,
            line,
            hit: false,
        });
    }

    /// Stops watching and says what was watched.
    pub fn remove(&mut self, hart: HartId) -> Option<Watch> {
        let index = self.entries.iter().position(|watch| watch.hart == hart)?;
        Some(self.entries.swap_remove(index))
    }

    /// Tests whether the hart's line has been stored to.
    #[must_use]
    pub fn is_hit(&self, hart: HartId) -> bool {
        self.entries
            .iter()
            .any(|watch| watch.hart == hart && watch.hit)
    }

    /// How many harts' lines have been stored to.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.entries.iter().filter(|watch| watch.hit).count()
    }

    /// Tests whether anyone watches a line of the page.
    #[must_use]
    pub fn any_in_page(&self, page: u64) -> bool {
        self.entries
            .iter()
            .any(|watch| watch.line / PAGE_BYTES == page)
    }

    /// Notes a store of `length` bytes at `physical`.
    pub fn note_store(&mut self, physical: u64, length: u64) {
        for watch in &mut self.entries {
            if physical < watch.line + LINE_BYTES && watch.line < physical.saturating_add(length) {
                watch.hit = true;
            }
        }
    }

    /// Every entry.
    #[must_use]
    pub fn entries(&self) -> &[Watch] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stores_to_the_line_count() {
        let mut watches = Watches::default();
        watches.insert(HartId(3), 0x1040);
        watches.note_store(0x1038, 8);
        watches.note_store(0x1080, 8);
        assert!(!watches.is_hit(HartId(3)));
        watches.note_store(0x1039, 8);
        assert!(watches.is_hit(HartId(3)));
        assert_eq!(watches.remove(HartId(3)).map(|watch| watch.hit), Some(true));
        assert!(!watches.any_in_page(1));
    }
}
