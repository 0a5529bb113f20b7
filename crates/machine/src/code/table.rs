//! From physical addresses to blocks: an open-addressed hash table of block numbers.

const EMPTY: u32 = u32::MAX;
const REMOVED: u32 = u32::MAX - 1;

/// A set of block numbers, found by a key that the caller keeps with the block.
#[derive(Debug)]
pub struct Table {
    slots: Vec<u32>,
    mask: usize,
    used: usize,
}

impl Table {
    /// A table with `slots` places, a power of two and more than it will ever hold.
    pub fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        Self {
            slots: vec![EMPTY; slots],
            mask: slots - 1,
            used: 0,
        }
    }

    fn start(&self, key: u64) -> usize {
        // Fibonacci hashing: the high bits of a product depend on every bit of the key.
        ((key >> 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.mask
    }

    /// The block with this key.
    #[inline]
    pub fn find(&self, key: u64, key_of: impl Fn(u32) -> Option<u64>) -> Option<u32> {
        let mut at = self.start(key);
        loop {
            let slot = *self.slots.get(at)?;
            match slot {
                EMPTY => return None,
                REMOVED => {}
                block if key_of(block) == Some(key) => return Some(block),
                _ => {}
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Adds a block; there must be none with this key. `false` if the table is too full.
    pub fn insert(&mut self, key: u64, block: u32) -> bool {
        if self.used * 2 > self.mask {
            return false;
        }
        let mut at = self.start(key);
        while let Some(slot) = self.slots.get_mut(at) {
            if *slot == EMPTY {
                self.used += 1;
                *slot = block;
                return true;
            }
            at = (at + 1) & self.mask;
        }
        false
    }

    /// Removes a block.
    pub fn remove(&mut self, key: u64, block: u32) {
        let mut at = self.start(key);
        while let Some(slot) = self.slots.get_mut(at) {
            if *slot == block {
                *slot = REMOVED;
                return;
            }
            if *slot == EMPTY {
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there_and_only_that() {
        let keys: Vec<u64> = (0..100).map(|n| 0x8000_0000 + n * 2).collect();
        let key_of = |block: u32| keys.get(block as usize).copied();
        let mut table = Table::new(256);
        for (block, &key) in keys.iter().enumerate() {
            assert!(table.insert(key, block as u32));
        }
        table.remove(keys[7], 7);
        for (block, &key) in keys.iter().enumerate() {
            let expected = (block != 7).then_some(block as u32);
            assert_eq!(table.find(key, key_of), expected);
        }
        assert_eq!(table.find(0x1234, key_of), None);
    }

    #[test]
    fn a_full_table_says_so() {
        let mut table = Table::new(4);
        let inserted = (0..4)
            .filter(|&block| table.insert(u64::from(block) * 2, block))
            .count();
        assert!(inserted < 4);
    }
}
