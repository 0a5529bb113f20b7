//! Decoding blocks from memory.

use super::{BLOCK_ROOM, Block, CodeCache, CodeIndex, INSTRUCTION_ROOM, NO_BLOCK, SCRATCH, lines};
use crate::base::{PAGE_BYTES, PAGE_SHIFT};
use crate::instruction::{Instruction, Operation, decode, expand};
use crate::ram::Ram;

/// The length in bytes of the instruction whose first halfword this is.
const fn length(halfword: u16) -> u8 {
    if halfword & 3 == 3 { 4 } else { 2 }
}

/// Decodes an instruction from its bytes; the upper halfword counts only if it belongs to it.
fn decode_bytes(low: u16, high: u16) -> Instruction {
    if length(low) == 4 {
        return decode(u32::from(low) | u32::from(high) << 16, 4);
    }
    match expand(low) {
        Some(raw) => decode(raw, 2),
        None => Instruction {
            immediate: i32::from(low),
            ..Instruction::bare(Operation::Illegal)
        },
    }
}

impl CodeCache {
    /// Decodes the block at a physical address in RAM. The caller marks the page.
    ///
    /// `None` if its first instruction does not end in the same page.
    pub fn build(&mut self, ram: &Ram, physical: u64) -> Option<CodeIndex> {
        let room_needed = usize::from(self.limit.instructions) + 2;
        if self.instructions.len() + room_needed > INSTRUCTION_ROOM
            || self.blocks.len() >= BLOCK_ROOM
        {
            self.clear();
        }
        let page_end = (physical | (PAGE_BYTES - 1)) + 1;
        let boundary = (1_u64 << self.limit.boundary_shift) - 1;
        let soft_end = ((physical | boundary) + 1).min(page_end);
        let first = self.instructions.len();
        let mut at = physical;
        let mut count = 0;
        let mut ended = false;
        while !ended && at < soft_end && count < self.limit.instructions {
            let low = ram.read::<u16>(at)?;
            let length = u64::from(length(low));
            if at + length > page_end {
                break;
            }
            let high = if length == 4 {
                ram.read::<u16>(at + 2)?
            } else {
                0
            };
            count += 1;
            let offset = (at - physical) as u16;
            let mut instruction = Instruction {
                count,
                offset,
                ..decode_bytes(low, high)
            };
            if instruction.operation.is_relative() {
                instruction.immediate += i32::from(offset);
            }
            ended = instruction.operation.ends_block();
            self.instructions.push(instruction);
            at += length;
        }
        if count == 0 {
            return None;
        }
        if !ended {
            self.instructions.push(Instruction {
                count,
                immediate: (at - physical) as i32,
                ..Instruction::bare(Operation::FallThrough)
            });
        }
        self.enter(ram, physical, first as CodeIndex, (at - physical) as u16);
        Some(first as CodeIndex)
    }

    fn enter(&mut self, ram: &Ram, physical: u64, first: CodeIndex, bytes: u16) {
        let offset = physical.wrapping_sub(ram.base());
        self.place_line(first, offset);
        let page = (offset >> PAGE_SHIFT) as usize;
        let number = self.blocks.len() as u32;
        let Some(code) = self.pages.get_mut(page) else {
            return;
        };
        let length = (self.instructions.len() - first as usize) as u16;
        let block = Block {
            physical,
            first,
            next: code.first,
            bytes,
            length,
        };
        if self.table.insert(physical, first) {
            code.first = number;
            code.lines |= lines(&block);
            self.blocks.push(block);
            return;
        }
        // The table has filled up with removed entries: make a new one without them.
        self.table.clear();
        let (blocks, table, pages) = (&mut self.blocks, &mut self.table, &mut self.pages);
        blocks.push(block);
        if let Some(code) = pages.get_mut(page) {
            code.first = number;
            code.lines |= lines(&block);
        }
        for code in pages.iter() {
            let mut at = code.first;
            while at != NO_BLOCK
                && let Some(block) = blocks.get(at as usize)
            {
                table.insert(block.physical, block.first);
                at = block.next;
            }
        }
    }

    /// Decodes one instruction that lies across two pages, into a place that the next one takes.
    /// `offset` is where in RAM it begins.
    pub fn build_scratch(&mut self, low: u16, high: u16, offset: u64) -> CodeIndex {
        let instruction = Instruction {
            count: 1,
            ..decode_bytes(low, high)
        };
        let after = Instruction {
            count: 1,
            immediate: i32::from(length(low)),
            ..Instruction::bare(Operation::FallThrough)
        };
        let place = SCRATCH as usize;
        if let Some(places) = self.instructions.get_mut(place..place + 2) {
            places.copy_from_slice(&[instruction, after]);
        }
        self.place_line(SCRATCH, offset);
        SCRATCH
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BlockLimit, Discarded};
    use super::*;

    const BASE: u64 = 0x8000_0000;
    const NOP: u32 = 0x13;
    const LOOP: u32 = 0x6f; // jal x0, 0

    fn memory(words: &[u32]) -> Ram {
        let mut ram = Ram::new(BASE, 2 * PAGE_BYTES).expect("two pages");
        for (index, &word) in words.iter().enumerate() {
            ram.write(BASE + 4 * index as u64, word).expect("inside");
        }
        ram
    }

    /// Bytes of a block that ends by falling through.
    fn end(cache: &CodeCache, first: CodeIndex) -> i32 {
        let block = &cache.instructions[first as usize..];
        let last = block.iter().find(|i| i.operation == Operation::FallThrough);
        last.expect("falls through").immediate
    }

    #[test]
    fn blocks_end_at_jumps_and_are_found() {
        let ram = memory(&[NOP, NOP, LOOP, NOP]);
        let mut cache = CodeCache::new(2);
        let first = cache.build(&ram, BASE).expect("decodes");
        assert_eq!(cache.find(BASE), Some(first));
        assert_eq!(cache.find(BASE + 4), None);
        let jump = cache.instructions[first as usize + 2];
        assert_eq!(
            (jump.operation, jump.count, jump.immediate),
            (Operation::Jump, 3, 8)
        );
    }

    #[test]
    fn a_store_discards_exactly_what_it_overlaps() {
        let ram = memory(&[NOP, LOOP, NOP, LOOP]);
        let mut cache = CodeCache::new(2);
        let first = cache.build(&ram, BASE).expect("decodes");
        cache.build(&ram, BASE + 8).expect("decodes");
        assert_eq!(cache.discard(0, BASE + 16, 8, first), Discarded::Nothing);
        assert_eq!(cache.discard(0, BASE + 0x800, 8, first), Discarded::Nothing);
        assert_eq!(cache.discard(0, BASE + 4, 4, first + 1), Discarded::Current);
        assert_eq!(cache.find(BASE), None);
        assert_eq!(
            cache.instructions[first as usize].operation,
            Operation::Stale
        );
        assert!(cache.find(BASE + 8).is_some());
        assert!(cache.has_page(0));
        assert_eq!(cache.discard(0, BASE + 15, 1, 0), Discarded::Others);
        assert!(!cache.has_page(0));
    }

    #[test]
    fn blocks_stop_before_instructions_across_pages() {
        let mut ram = memory(&[]);
        ram.write(BASE + 0xffc, 0x0001_u16).expect("inside");
        ram.write(BASE + 0xffe, NOP).expect("inside");
        let mut cache = CodeCache::new(2);
        let first = cache.build(&ram, BASE + 0xffc).expect("decodes");
        assert_eq!(end(&cache, first), 2);
        assert_eq!(cache.build(&ram, BASE + 0xffe), None);
        let scratch = cache.build_scratch(NOP as u16, (NOP >> 16) as u16, 0);
        assert_eq!(end(&cache, scratch), 4);
    }

    #[test]
    fn limits_end_blocks() {
        let ram = memory(&[NOP; 40]);
        let mut cache = CodeCache::new(2);
        cache.set_limit(BlockLimit {
            instructions: 3,
            boundary_shift: 6,
        });
        let first = cache.build(&ram, BASE).expect("decodes");
        assert_eq!(end(&cache, first), 12);
        let first = cache.build(&ram, BASE + 60).expect("decodes");
        assert_eq!(end(&cache, first), 4);
    }
}
