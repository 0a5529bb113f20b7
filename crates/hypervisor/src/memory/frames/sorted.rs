//! A map in a sorted vector: little code for maps that are filled once, mostly in order.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use alloc::vec::Vec;

/// A map with its keys in order. To find a key takes log₂ n steps; to insert or remove one moves all entries behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

// Derived, it would ask for defaults of keys and values.
impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
}

impl<K: Ord + Copy, V> SortedMap<K, V> {
    fn place(&self, key: K) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| other.cmp(&key))
    }

    /// Returns true without entries.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Value of `key`.
    pub(super) fn get(&self, key: K) -> Option<&V> {
        let place = self.place(key).ok()?;
        self.entries.get(place).map(|(_, value)| value)
    }

    /// Value of `key`, to be changed.
    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let place = self.place(key).ok()?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Greatest key up to `key`, with its value.
    pub(super) fn last_up_to(&self, key: K) -> Option<(K, &V)> {
        let behind = self.entries.partition_point(|(other, _)| *other <= key);
        let (found, value) = self.entries.get(behind.checked_sub(1)?)?;
        Some((*found, value))
    }

    /// Sets the value of `key`.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self.place(key) {
            Ok(place) => {
                if let Some((_, old)) = self.entries.get_mut(place) {
                    *old = value;
                }
            }
            Err(place) => self.entries.insert(place, (key, value)),
        }
    }

    /// Removes `key` and returns its value.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let place = self.place(key).ok()?;
        Some(self.entries.remove(place).1)
    }

    /// Keys and values, in the order of the keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_map_is_as_the_standard_ones(steps in prop::collection::vec((0u8..40, 0u8..3), 0..200)) {
            let mut map = SortedMap::default();
            let mut expected = BTreeMap::new();
            for (index, (key, what)) in steps.into_iter().enumerate() {
                match what {
                    0 => prop_assert_eq!(map.remove(key), expected.remove(&key)),
                    1 => {
                        map.insert(key, index);
                        expected.insert(key, index);
                    }
                    _ => {
                        prop_assert_eq!(map.get_mut(key), expected.get_mut(&key));
                        let last = expected.range(..=key).next_back();
                        prop_assert_eq!(map.last_up_to(key), last.map(|(key, value)| (*key, value)));
                    }
                }
                prop_assert_eq!(map.get(key), expected.get(&key));
                prop_assert_eq!(map.is_empty(), expected.is_empty());
                prop_assert!(map.iter().eq(expected.iter().map(|(key, value)| (*key, value))));
            }
        }
    }
}
