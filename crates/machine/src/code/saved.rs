//! Decoded blocks as a checkpoint keeps them: their places, not their contents.
//!
//! Which blocks are decoded and which jumps lead straight to another block changes no result, but
//! it decides when a translation is looked up, which the monitor counts. Blocks are decoded again
//! from memory, so that nothing in a file is ever taken for a decoded instruction.

use serde::{Deserialize, Serialize};

use super::{BLOCK_ROOM, BlockLimit, CodeCache, CodeIndex, FIRST_BLOCK, INSTRUCTION_ROOM};
use crate::instruction::{Instruction, Operation};
use crate::ram::Ram;

/// A block that was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SavedBlock {
    /// Offset of its first instruction in RAM, if it has not been discarded.
    offset: Option<u64>,
    /// Decoded instructions.
    length: u16,
}

/// Which blocks are decoded, and how they are linked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCode {
    limit: BlockLimit,
    generation: u64,
    blocks: Vec<SavedBlock>,
    /// Jumps that know where they lead: the distance from the one before, and the target.
    links: Vec<(CodeIndex, CodeIndex)>,
}

impl CodeCache {
    /// Decoded blocks as a checkpoint keeps them.
    #[must_use]
    pub fn save(&self, ram: &Ram) -> SavedCode {
        let mut blocks = Vec::with_capacity(self.blocks.len());
        let mut links = Vec::new();
        let mut last = 0;
        for block in &self.blocks {
            let live = !self.is_stale(block.first);
            blocks.push(SavedBlock {
                offset: live.then(|| block.physical.wrapping_sub(ram.base())),
                length: block.length,
            });
            let instructions = self.instructions.iter().enumerate();
            let own = instructions
                .skip(block.first as usize)
                .take(usize::from(block.length));
            for (index, instruction) in own.filter(|(_, i)| live && i.link != 0) {
                let index = index as CodeIndex;
                links.push((index - last, instruction.link));
                last = index;
            }
        }
        SavedCode {
            limit: self.limit,
            generation: self.generation,
            blocks,
            links,
        }
    }

    /// Decodes from `ram` what was decoded. `None` if that is not what memory holds.
    #[must_use]
    pub fn restore(&mut self, saved: &SavedCode, ram: &Ram) -> Option<()> {
        self.set_limit(saved.limit);
        if self.limit != saved.limit || saved.blocks.len() > BLOCK_ROOM {
            return None;
        }
        for block in &saved.blocks {
            let first = self.instructions.len();
            let length = usize::from(block.length);
            // Room is made by forgetting everything: whoever saved had not come to that.
            let room = usize::from(self.limit.instructions) + 2;
            if length == 0 || first + length.max(room) > INSTRUCTION_ROOM {
                return None;
            }
            if let Some(offset) = block.offset {
                ram.offset(ram.base().checked_add(offset)?, 2)?;
                let physical = ram.base() + offset;
                if !physical.is_multiple_of(2) || self.find(physical).is_some() {
                    return None;
                }
                self.build(ram, physical)?;
                if self.instructions.len() != first + length {
                    return None;
                }
            } else {
                let stale = Instruction::bare(Operation::Stale);
                self.instructions.resize(first + length, stale);
                self.blocks.push(super::Block {
                    physical: u64::MAX,
                    first: first as CodeIndex,
                    next: super::NO_BLOCK,
                    bytes: 0,
                    length: block.length,
                });
            }
        }
        let mut from: CodeIndex = 0;
        for &(distance, to) in &saved.links {
            from = from.checked_add(distance)?;
            if (from as usize) < FIRST_BLOCK || !self.is_block(to) {
                return None;
            }
            self.instructions.get_mut(from as usize)?.link = to;
        }
        self.generation = saved.generation;
        Some(())
    }

    /// Tests whether there is a decoded instruction, discarded or not, at `index`.
    #[must_use]
    pub const fn is_decoded(&self, index: CodeIndex) -> bool {
        index as usize >= FIRST_BLOCK && (index as usize) < self.instructions.len()
    }

    /// Tests whether a block, discarded or not, begins at `index`.
    #[must_use]
    pub fn is_block(&self, index: CodeIndex) -> bool {
        let found = self
            .blocks
            .binary_search_by_key(&index, |block| block.first);
        found.is_ok()
    }
}
