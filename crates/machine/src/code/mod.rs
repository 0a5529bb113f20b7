//! Decoded blocks.
//!
//! A block is the run of instructions from an address to the first one that always leaves it, the
//! end of the page, or a limit. Conditional branches do not end a block: one that is not taken
//! costs no more than an addition. Blocks are found by the *physical* address of their first
//! instruction and so serve every hart and every address space; they never change once decoded.
//!
//! Where a block ends depends on its first address and on memory alone, never on what happened to
//! be decoded before. Harts switch at the ends of blocks, so a run does not depend on the cache.

mod build;
mod saved;
mod table;

pub use saved::SavedCode;

use serde::{Deserialize, Serialize};

use crate::base::PAGE_SHIFT;
use crate::hart::Hart;
use crate::instruction::{Instruction, Operation};
use crate::native::{FilterTables, INSTRUCTION_ROOM, Left, Native, Site};
use crate::ram::Ram;
use crate::timing::{Costs, LINE_SHIFT};
use table::Table;

pub use crate::instruction::CodeIndex;

/// Room for blocks.
const BLOCK_ROOM: usize = 1 << 19;
/// Indices below this one are not blocks: the stale mark and the scratch block.
const FIRST_BLOCK: usize = 3;
/// Where the block of a single instruction that is not kept stands.
const SCRATCH: CodeIndex = 1;

/// Where blocks end besides at jumps and page ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLimit {
    /// The greatest number of instructions, 1..=250.
    pub instructions: u8,
    /// log2 of a size in bytes; no block begins before and continues after a multiple of it.
    pub boundary_shift: u32,
}

impl Default for BlockLimit {
    fn default() -> Self {
        Self {
            instructions: 64,
            boundary_shift: crate::base::PAGE_SHIFT,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Block {
    /// Physical address of the first instruction.
    physical: u64,
    first: CodeIndex,
    /// The next block of the same page, `NO_BLOCK` at the end.
    next: u32,
    /// Bytes of encoding.
    bytes: u16,
    /// Decoded instructions.
    length: u16,
}

/// Result of [`CodeCache::discard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// No block.
    Nothing,
    /// Blocks, but not that of the current instruction.
    Others,
    /// That of the current instruction and perhaps others.
    Current,
}

const NO_BLOCK: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct PageCode {
    /// Bit n: some block covers a byte of the page's nth 64.
    lines: u64,
    /// The page's newest block.
    first: u32,
}

impl PageCode {
    const EMPTY: Self = Self {
        lines: 0,
        first: NO_BLOCK,
    };
}

/// All decoded blocks.
#[derive(Debug)]
pub struct CodeCache {
    /// Never grows beyond its first capacity: the execution loop holds pointers into it.
    instructions: Vec<Instruction>,
    blocks: Vec<Block>,
    table: Table,
    pages: Vec<PageCode>,
    /// For the first instruction of each block, the number of the line of RAM that it begins in.
    lines: Vec<u32>,
    generation: u64,
    limit: BlockLimit,
    /// Blocks translated to the host's instructions, where there is a translator and it is wanted.
    native: Option<Box<Native>>,
}

impl CodeCache {
    /// An empty cache for a RAM of `pages` pages.
    #[must_use]
    pub fn new(pages: usize) -> Self {
        let mut cache = Self {
            instructions: Vec::with_capacity(INSTRUCTION_ROOM),
            blocks: Vec::new(),
            table: Table::new(BLOCK_ROOM * 2),
            pages: vec![PageCode::EMPTY; pages],
            // Zero pages of the host cost nothing until they are written.
            lines: vec![0; INSTRUCTION_ROOM],
            generation: 0,
            limit: BlockLimit::default(),
            native: Native::new(),
        };
        cache
            .instructions
            .resize(FIRST_BLOCK, Instruction::bare(Operation::Stale));
        cache
    }

    /// Changes where blocks end, and discards all of them.
    pub fn set_limit(&mut self, limit: BlockLimit) {
        let instructions = limit.instructions.clamp(1, 250);
        // Blocks end with their page in any case, and instructions have two bytes at least.
        let boundary_shift = limit.boundary_shift.clamp(1, PAGE_SHIFT);
        self.limit = BlockLimit {
            instructions,
            boundary_shift,
        };
        self.clear();
    }

    /// Where blocks end.
    #[must_use]
    pub const fn limit(&self) -> BlockLimit {
        self.limit
    }

    /// Changes when indices handed out before have lost their meaning.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The first decoded instruction; instruction `n` stands at `n` from there. Valid until the
    /// cache is dropped; what an index means, until the generation changes.
    #[inline(always)]
    #[must_use]
    pub const fn base(&self) -> *const Instruction {
        self.instructions.as_ptr()
    }

    /// The block that begins at a physical address, if it is decoded.
    #[inline]
    #[must_use]
    pub fn find(&self, physical: u64) -> Option<CodeIndex> {
        self.table.find(physical)
    }

    /// The offset in RAM of the line that a block begins in.
    #[inline]
    #[must_use]
    pub fn offset_of(&self, first: CodeIndex) -> u64 {
        let line = self.lines.get(first as usize).copied().unwrap_or(0);
        u64::from(line) << LINE_SHIFT
    }

    /// Notes that a block begins at an offset in RAM.
    fn place_line(&mut self, first: CodeIndex, offset: u64) {
        // RAM is at most 256 GiB.
        if let Some(line) = self.lines.get_mut(first as usize) {
            *line = (offset >> LINE_SHIFT) as u32;
        }
    }

    /// Tests whether the instruction has been discarded.
    #[inline]
    #[must_use]
    pub fn is_stale(&self, index: CodeIndex) -> bool {
        self.instructions
            .get(index as usize)
            .is_none_or(|i| i.operation == Operation::Stale)
    }

    /// Where the jump or branch at `from` leads; 0 if that is not known.
    #[inline]
    #[must_use]
    pub fn link_of(&self, from: CodeIndex) -> CodeIndex {
        self.instructions.get(from as usize).map_or(0, |i| i.link)
    }

    /// Notes where the jump or branch at `from` leads, so that the next time it goes there
    /// directly.
    #[inline]
    pub fn link(&mut self, from: CodeIndex, to: CodeIndex) {
        // The scratch block is somebody else's by the next time.
        if (from.min(to) as usize) < FIRST_BLOCK {
            return;
        }
        if let Some(instruction) = self.instructions.get_mut(from as usize) {
            instruction.link = to;
        }
    }

    /// Tests whether anything of the page is decoded.
    #[must_use]
    pub fn has_page(&self, page: usize) -> bool {
        self.pages
            .get(page)
            .is_some_and(|page| page.first != NO_BLOCK)
    }

    /// Discards the blocks that overlap `length` bytes of the page from `physical` on; says
    /// whether the block of the instruction at `current` was one of them. Whoever arrives at a
    /// discarded block finds it stale.
    pub fn discard(
        &mut self,
        page: usize,
        physical: u64,
        length: u64,
        current: CodeIndex,
    ) -> Discarded {
        let Some(&code) = self.pages.get(page) else {
            return Discarded::Nothing;
        };
        let (first, last) = (
            (physical & 0xfff) >> 6,
            ((physical + length - 1) & 0xfff) >> 6,
        );
        let touched = (u64::MAX << first) & (u64::MAX >> (63 - last));
        if code.lines & touched == 0 {
            return Discarded::Nothing;
        }
        let mut kept = PageCode::EMPTY;
        let mut discarded = Discarded::Nothing;
        let mut at = code.first;
        while let Some(&block) = self.blocks.get(at as usize) {
            let overlaps = block.physical < physical + length
                && physical < block.physical + u64::from(block.bytes);
            if overlaps {
                let own = block.first..block.first + CodeIndex::from(block.length);
                if own.contains(&current) {
                    discarded = Discarded::Current;
                } else if discarded == Discarded::Nothing {
                    discarded = Discarded::Others;
                }
                self.table.remove(block.physical, block.first);
                if let Some(instruction) = self.instructions.get_mut(block.first as usize) {
                    instruction.operation = Operation::Stale;
                }
                if let Some(native) = &mut self.native {
                    native.forget(block.first);
                }
            } else {
                if let Some(block) = self.blocks.get_mut(at as usize) {
                    block.next = kept.first;
                }
                kept = PageCode {
                    lines: kept.lines | lines(&block),
                    first: at,
                };
            }
            at = block.next;
        }
        if let Some(page) = self.pages.get_mut(page) {
            *page = kept;
        }
        discarded
    }

    /// Discards everything; indices handed out before lose their meaning.
    pub fn clear(&mut self) {
        self.instructions.truncate(FIRST_BLOCK);
        self.blocks.clear();
        self.table.clear();
        self.pages.fill(PageCode::EMPTY);
        self.generation += 1;
        if let Some(native) = &mut self.native {
            native.clear();
        }
    }

    /// Tests whether blocks are translated to the host's instructions. They are from the beginning, where
    /// there is a translator.
    #[must_use]
    pub const fn is_translated(&self) -> bool {
        self.native.is_some()
    }

    /// Executes no block by the host's instructions from now on.
    pub fn interpret_all(&mut self) {
        self.native = None;
    }

    /// Makes translations those of a mode: with the costs of single instructions in the timing mode, and without branches and jumps
    /// if these are predicted.
    pub fn prepare(&mut self, costs: Option<&Costs>, predicted: bool) {
        if let Some(native) = &mut self.native {
            native.prepare(costs, predicted);
        }
    }

    /// Notes that the block `first` at the virtual `address` is executed; says whether it is translated.
    #[inline]
    pub fn warm(&mut self, first: CodeIndex, address: u64, base: u64) -> bool {
        if (first as usize) < FIRST_BLOCK {
            return false;
        }
        let Some(native) = &mut self.native else {
            return false;
        };
        let line = self.lines.get(first as usize).copied().unwrap_or(0);
        let line = u64::from(line);
        let offset = line << LINE_SHIFT | address & ((1 << LINE_SHIFT) - 1);
        let place = (address, (base >> LINE_SHIFT) + line);
        let translated =
            native.is_translated(first) || native.warm(&self.instructions, first, place, base);
        if translated {
            native.lead(first, offset);
        }
        translated
    }

    /// Lets a jump in translated code lead straight to a block, if that is translated.
    pub fn connect(&mut self, site: Site, to: CodeIndex) {
        if let Some(native) = &mut self.native {
            native.connect(site, to);
        }
    }

    /// Tests whether translated code is still where it was left.
    #[inline]
    #[must_use]
    pub fn is_current(&self, site: Site) -> bool {
        self.native
            .as_ref()
            .is_some_and(|native| native.is_current(site))
    }

    /// Goes on in translated code where it was left at a limit, at the address `block`; `None` if it is there no more.
    ///
    /// # Safety
    /// `filters` lead to the places of filters, or are [`FilterTables::NONE`].
    #[inline]
    pub unsafe fn resume(
        &self,
        hart: &mut Hart,
        ram: &Ram,
        filters: FilterTables,
        site: Site,
        block: u64,
    ) -> Option<Left> {
        let native = self.native.as_ref()?;
        // SAFETY: the caller's promise.
        unsafe { native.resume(hart, ram, filters, site, block) }
    }

    /// Executes translated code from a decoded instruction of the block at `block` on, if there is any.
    ///
    /// # Safety
    /// `filters` lead to the places of filters, or are [`FilterTables::NONE`].
    #[inline]
    pub unsafe fn run(
        &self,
        hart: &mut Hart,
        ram: &Ram,
        filters: FilterTables,
        at: CodeIndex,
        block: u64,
    ) -> Option<Left> {
        let native = self.native.as_ref()?;
        // SAFETY: the caller's promise.
        unsafe { native.run(hart, ram, filters, at, block) }
    }
}

/// The 64-byte pieces of its page that a block covers, as bits.
fn lines(block: &Block) -> u64 {
    let start = block.physical & 0xfff;
    let end = start + u64::from(block.bytes).max(1) - 1;
    (u64::MAX << (start >> 6)) & (u64::MAX >> (63 - (end >> 6).min(63)))
}
