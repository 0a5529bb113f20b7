//! Words of which somebody who listens wants to hear every store: locks, as far as harts have waited for them.

use std::collections::BTreeMap;

/// Most words: a guest may wait for as many as it likes.
const MAX_WORDS: usize = 1 << 16;
/// Bytes of the largest word.
const LARGEST: u64 = 8;

/// The words, and those that have been stored to since they were last asked for.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Sizes in bytes by physical addresses.
    words: BTreeMap<u64, u64>,
    stored: Vec<(u64, u64)>,
}

impl Observed {
    /// Observes a word; `true` if it was not observed yet, and can be.
    pub fn insert(&mut self, physical: u64, size: u64) -> bool {
        let fits = self.words.len() < MAX_WORDS && size <= LARGEST;
        fits && self.words.insert(physical, size).is_none()
    }

    /// Notes a store by a hart.
    pub fn note_store(&mut self, physical: u64, length: u64) {
        let from = physical.saturating_sub(LARGEST);
        for (&word, &size) in self.words.range(from..physical.saturating_add(length)) {
            if word + size > physical && !self.stored.contains(&(word, size)) {
                self.stored.push((word, size));
            }
        }
    }

    /// Tests whether anything has been stored since it was last asked for.
    pub const fn has_stored(&self) -> bool {
        !self.stored.is_empty()
    }

    /// The words that have been stored to, with their sizes.
    pub fn take_stored(&mut self) -> Vec<(u64, u64)> {
        core::mem::take(&mut self.stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_stores_are_noted_once() {
        let mut observed = Observed::default();
        assert!(observed.insert(0x1000, 4));
        assert!(!observed.insert(0x1000, 4));
        assert!(observed.insert(0x1008, 8));
        observed.note_store(0x1004, 4);
        assert!(!observed.has_stored());
        observed.note_store(0x1002, 2);
        observed.note_store(0x1000, 4);
        observed.note_store(0x100f, 1);
        assert_eq!(observed.take_stored(), [(0x1000, 4), (0x1008, 8)]);
        assert!(!observed.has_stored());
    }
}
