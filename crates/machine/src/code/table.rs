//! From physical addresses to blocks: an open-addressed hash table.

use crate::instruction::CodeIndex;
use crate::native::INSTRUCTION_ROOM;

/// Zero, so that the host need not touch a table's pages before they are used. No block is at address 0.
const EMPTY: u64 = 0;
const REMOVED: u64 = 1;
/// Bits of a [`CodeIndex`]; the bits above them hold the halfword's number, for all RAM that a machine
/// can have.
const INDEX_BITS: u32 = 24;

const _: () = assert!(INSTRUCTION_ROOM < 1 << INDEX_BITS);

/// A block's physical address and first instruction: all that a search has to look at.
const fn slot(physical: u64, first: CodeIndex) -> u64 {
    physical >> 1 << INDEX_BITS | first as u64
}

/// The blocks' first instructions, found by physical addresses.
#[derive(Debug)]
pub struct Table {
    slots: Vec<u64>,
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

    fn start(&self, physical: u64) -> usize {
        // Fibonacci hashing: the high bits of a product depend on every bit of the key.
        ((physical >> 1).wrapping_mul(splitmix::GOLDEN_GAMMA) >> 32) as usize & self.mask
    }

    /// The first instruction of the block at an address.
    #[inline]
    pub fn find(&self, physical: u64) -> Option<CodeIndex> {
        let mut at = self.start(physical);
        loop {
            let found = *self.slots.get(at)?;
            if found >> INDEX_BITS == physical >> 1 {
                return Some((found & ((1 << INDEX_BITS) - 1)) as CodeIndex);
            }
            if found == EMPTY {
                return None;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Adds a block; there must be none at this address. `false` if the table is too full.
    pub fn insert(&mut self, physical: u64, first: CodeIndex) -> bool {
        let mut at = self.start(physical);
        while let Some(place) = self.slots.get_mut(at) {
            // A program that changes the same instruction again and again must not leave a trail that every search follows.
            if *place == REMOVED {
                *place = slot(physical, first);
                return true;
            }
            if *place == EMPTY {
                if self.used * 2 > self.mask {
                    return false;
                }
                self.used += 1;
                *place = slot(physical, first);
                return true;
            }
            at = (at + 1) & self.mask;
        }
        false
    }

    /// Removes a block.
    pub fn remove(&mut self, physical: u64, first: CodeIndex) {
        let mut at = self.start(physical);
        while let Some(place) = self.slots.get_mut(at) {
            if *place == slot(physical, first) {
                *place = REMOVED;
                return;
            }
            if *place == EMPTY {
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        if self.used > 0 {
            self.slots.fill(EMPTY);
            self.used = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there_and_only_that() {
        let keys: Vec<u64> = (0..100).map(|n| 0x8000_0000 + n * 2).collect();
        let mut table = Table::new(256);
        for (block, &key) in keys.iter().enumerate() {
            assert!(table.insert(key, block as u32));
        }
        table.remove(keys[7], 7);
        for (block, &key) in keys.iter().enumerate() {
            let expected = (block != 7).then_some(block as u32);
            assert_eq!(table.find(key), expected);
        }
        assert_eq!(table.find(0x1234), None);
    }

    #[test]
    fn replaced_blocks_take_one_place() {
        let mut table = Table::new(16);
        for first in 3..1000 {
            assert!(table.insert(0x8000_1000, first), "replaced {first} times");
            assert_eq!(table.find(0x8000_1000), Some(first));
            table.remove(0x8000_1000, first);
        }
    }

    #[test]
    fn a_full_table_says_so() {
        let mut table = Table::new(4);
        let inserted = (0..4)
            .filter(|&block| table.insert(0x8000_0000 + u64::from(block) * 2, block))
            .count();
        assert!(inserted < 4);
    }
}
