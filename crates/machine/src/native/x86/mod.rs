//! The translator for x86-64.

mod arithmetic;
mod assembler;
mod atomic;
mod exit;
mod filter;
mod layout;
mod memory;
mod target;
mod translate;

#[cfg(test)]
mod tests;

use super::INSTRUCTION_ROOM;
use super::{FilterTables, Left, Site};
use crate::hart::Hart;
use crate::instruction::{CodeIndex, Instruction, Operation};
use crate::ram::Ram;
use crate::timing::{Costs, LINE_SHIFT};
use assembler::{
    Assembler, Quad, R12, R13, R14, R15, RAX, RBP, RBX, RDI, RDX, RSI, displacement, op,
};
use exit::{Ends, OUTSIDE, answer, kind};
use layout::{Frame, frame};
use memory::{CodeMemory, serialize};
use target::{TARGETS_SHIFT, Target};

/// Bytes of the buffer.
const SIZE: usize = 64 << 20;
/// A block is translated when it has been executed as often as this.
const WARM: u32 = 24;
/// Offsets of translations are greater than this, counts are not.
const FIRST_PLACE: u32 = 64;
/// More bytes than a translated instruction takes.
const MAX_BYTES: usize = 512;

const _: () = assert!(SIZE < 1 << 32 && INSTRUCTION_ROOM < 1 << 24);

/// Translations of blocks.
#[derive(Debug)]
pub struct Native {
    memory: CodeMemory,
    assembler: Assembler,
    rare: Assembler,
    /// For each decoded instruction, where its translation is entered, or how often it has been executed.
    places: Vec<u32>,
    /// For the low bits of an offset in RAM, the block there that jumps have led to last.
    targets: Vec<Target>,
    /// Costs of instructions, in the timing mode.
    costs: Option<Costs>,
    /// True if branches and jumps are the interpreter's, which tells the harts' predictors of them.
    predicted: bool,
    ends: Ends,
    /// The first free byte of the buffer's first half, and of its second, for what is rarely executed.
    free: u32,
    rare_free: u32,
    epoch: u64,
    /// How far behind its beginning a block is entered from its own page, which need not be looked at then. The
    /// same in all blocks.
    inner: u32,
    has_count_ones: bool,
}

impl Native {
    /// A translator that has translated nothing. `None` where the host has no room for it, or allows no code
    /// to be made.
    #[must_use]
    pub fn new() -> Option<Box<Self>> {
        let mut native = Box::new(Self {
            memory: CodeMemory::new(SIZE)?,
            assembler: Assembler::default(),
            rare: Assembler::default(),
            places: Vec::new(),
            targets: Vec::new(),
            costs: None,
            predicted: false,
            ends: Ends::default(),
            free: 0,
            rare_free: 0,
            epoch: 0,
            inner: 0,
            has_count_ones: std::is_x86_feature_detected!("popcnt"),
        });
        native.clear();
        Some(native)
    }

    /// Makes translations those of a mode: with the costs of single instructions in the timing mode, and without branches and jumps
    /// if these are predicted.
    pub fn prepare(&mut self, costs: Option<&Costs>, predicted: bool) {
        if self.costs.as_ref() != costs || self.predicted != predicted {
            self.costs = costs.copied();
            self.predicted = predicted;
            self.clear();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        // Zero pages of the host cost nothing until they are written.
        self.places = vec![0; INSTRUCTION_ROOM];
        self.targets = vec![Target::EMPTY; 1 << TARGETS_SHIFT];
        self.epoch += 1;
        self.assembler.begin(0);
        self.begin();
        self.free = self.assembler.here().max(FIRST_PLACE + 1);
        self.rare_free = (SIZE / 2) as u32;
        self.memory.write(0, &self.assembler.bytes);
        serialize();
    }

    /// The way in, at offset 0, and the ways out.
    fn begin(&mut self) {
        const SAVED: [u8; 6] = [RBP, RBX, R12, R13, R14, R15];
        let a = &mut self.assembler;
        for register in SAVED {
            a.stack(0x50, register);
        }
        a.registers(Quad, op::MOV, RBX, RDI);
        a.registers(Quad, op::MOV, R15, RDX);
        a.memory(Quad, op::MOV, RBP, frame!(middle));
        a.memory(Quad, op::MOV, R12, frame!(loads));
        a.memory(Quad, op::MOV, R13, frame!(stores));
        a.memory(Quad, op::MOV, R14, frame!(ram));
        a.jump_register(RSI);
        self.ends.behind = a.here();
        a.set_wide(RAX, answer(kind::BEHIND, 0, 0));
        self.ends.leave = a.here();
        a.memory(Quad, op::STORE, R15, frame!(block));
        for register in SAVED.into_iter().rev() {
            a.stack(0x58, register);
        }
        a.ret();
    }

    /// The block that begins at a decoded instruction is no longer what memory holds.
    pub fn forget(&mut self, first: CodeIndex) {
        let Some(place) = self.places.get_mut(first as usize) else {
            return;
        };
        let entry = std::mem::take(place);
        if entry > FIRST_PLACE {
            // Other blocks jump here: they come to the interpreter, which finds the block stale.
            for entry_point in [entry, entry + self.inner] {
                let [a, b, c, d] = displacement(entry_point + 1, entry - OUTSIDE);
                self.memory.write(entry_point as usize, &[0xe9, a, b, c, d]);
            }
            serialize();
        }
    }

    /// Tests whether a block is translated.
    #[inline]
    #[must_use]
    pub fn is_translated(&self, first: CodeIndex) -> bool {
        self.places
            .get(first as usize)
            .is_some_and(|&place| place > FIRST_PLACE)
    }

    /// Lets translated code find the block that begins at an offset in RAM, if it is translated.
    #[inline]
    pub fn lead(&mut self, first: CodeIndex, offset: u64) {
        let place = self.places.get(first as usize).copied().unwrap_or(0);
        let index = (offset >> 1) as usize & ((1 << TARGETS_SHIFT) - 1);
        if place > FIRST_PLACE
            && let Some(target) = self.targets.get_mut(index)
        {
            let tag = (offset >> (TARGETS_SHIFT + 1)) as u32;
            *target = Target { tag, place };
        }
    }

    /// Notes that a block is executed that is not translated; says whether it is now. `all` are the decoded
    /// instructions, `place` is the block's virtual address and the physical line that it begins in, and `base`
    /// the physical address of RAM.
    pub fn warm(
        &mut self,
        all: &[Instruction],
        first: CodeIndex,
        place: (u64, u64),
        base: u64,
    ) -> bool {
        let (at, place) = (place, self.places.get_mut(first as usize));
        let Some(place) = place else {
            return false;
        };
        *place += 1;
        if *place < WARM {
            return false;
        }
        *place = 0;
        // A block that is not what memory holds any more is only passed through.
        let operation = all.get(first as usize).map(|first| first.operation);
        if operation == Some(Operation::Stale) {
            return false;
        }
        self.translate(all, first, at, base)
    }

    fn translate(
        &mut self,
        all: &[Instruction],
        first: CodeIndex,
        at: (u64, u64),
        base: u64,
    ) -> bool {
        let rest = all.get(first as usize..).unwrap_or_default();
        let Some(last) = rest.iter().position(|i| i.operation.ends_block()) else {
            return false;
        };
        let Some(block) = rest.get(..=last) else {
            return false;
        };
        let most = (block.len() + 2) * MAX_BYTES;
        if self.free as usize + most > SIZE / 2 || self.rare_free as usize + most > SIZE {
            self.clear();
        }
        let mut assembler = std::mem::take(&mut self.assembler);
        let mut rare = std::mem::take(&mut self.rare);
        assembler.begin(self.free);
        rare.begin(self.rare_free);
        let translator = translate::Translator::new(
            (&mut assembler, &mut rare),
            (self.costs.as_ref(), self.predicted),
            self.ends,
            base,
            self.has_count_ones,
        );
        let (places, inner) = translator.block(block, first, at);
        self.memory.write(self.free as usize, &assembler.bytes);
        self.memory.write(self.rare_free as usize, &rare.bytes);
        (self.free, self.rare_free) = (assembler.here(), rare.here());
        (self.assembler, self.rare) = (assembler, rare);
        self.inner = inner;
        for (index, place) in places {
            if let Some(slot) = self.places.get_mut(index as usize) {
                *slot = place;
            }
        }
        serialize();
        true
    }

    /// Lets a jump lead straight to a block of the same page, if that is translated.
    pub fn connect(&mut self, site: Site, to: CodeIndex) {
        let Some(&entry) = self.places.get(to as usize) else {
            return;
        };
        if site.epoch == self.epoch && entry > FIRST_PLACE {
            self.memory.write(
                site.place as usize,
                &displacement(site.place, entry + self.inner),
            );
            serialize();
        }
    }

    /// Executes the translation that is entered at a decoded instruction of the block at `block`, and others
    /// that it leads to. `None` if there is none, and nothing has been executed.
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
        let entry = *self.places.get(at as usize)?;
        if entry <= FIRST_PLACE {
            return None;
        }
        // SAFETY: the caller's promise, and a place of this filling of the buffer.
        unsafe { self.enter(hart, ram, filters, entry, block) }
    }

    /// Tests whether what a site tells of is still in the buffer.
    #[inline]
    #[must_use]
    pub const fn is_current(&self, site: Site) -> bool {
        site.epoch == self.epoch
    }

    /// Goes on where [`Left::Limit`] says, at the address `block`, if nothing can have changed that the translation has
    /// looked at since: fences, context, and what is decoded. `None` if it is there no more.
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
        if !self.is_current(site) {
            return None;
        }
        // SAFETY: the caller's promise, and a place of this filling of the buffer.
        unsafe { self.enter(hart, ram, filters, site.place, block) }
    }

    /// Enters the buffer.
    ///
    /// # Safety
    /// As [`Self::run`], and an instruction that may be entered stands at `entry`.
    #[inline]
    unsafe fn enter(
        &self,
        hart: &mut Hart,
        ram: &Ram,
        filters: FilterTables,
        entry: u32,
        block: u64,
    ) -> Option<Left> {
        // Translations of the timing mode look at the filters.
        if self.costs.is_some() && filters.loads.is_null() {
            return None;
        }
        let (loads, stores, fetches) = (hart.tlb.loads(), hart.tlb.stores(), hart.tlb.fetches());
        let start = self.memory.start();
        let whole: *mut Hart = hart;
        let mut frame = Frame {
            // SAFETY: an element of `x`, inside the hart.
            middle: unsafe { whole.cast::<u8>().add(layout::middle_offset()) },
            loads,
            stores,
            ram: ram.start(),
            fetches,
            targets: self.targets.as_ptr(),
            code: start,
            filters,
            block,
        };
        // SAFETY: what stands at the beginning of the buffer is a function of this type that keeps to the
        // calling convention.
        let enter: extern "sysv64" fn(*mut Frame, *const u8, u64) -> u64 =
            unsafe { std::mem::transmute(start) };
        // SAFETY: the caller's promise.
        let entry = unsafe { start.add(entry as usize) };
        // Translated code reads the tables, the frame and the hart, and writes the hart's `x`, `cycles` and
        // `retired`, the frame's `block`, and RAM where the tables of loads and stores lead: to whole pages of it.
        let answer = enter(&raw mut frame, entry, block);
        let (at, block) = ((answer & 0xff_ffff) as CodeIndex, frame.block);
        Some(match answer >> 56 {
            kind::BEFORE => Left::Before { at, block },
            kind::OUTSIDE => Left::Outside {
                at,
                block,
                offset: (answer >> 24 & 0xffff_ffff) << LINE_SHIFT,
            },
            kind::BEHIND => Left::Behind {
                target: block,
                from: (at != 0).then_some((
                    at,
                    Site {
                        place: (answer >> 24) as u32,
                        epoch: self.epoch,
                    },
                )),
            },
            _ => Left::Limit {
                target: block,
                from: at,
                site: Site {
                    place: (answer >> 24) as u32,
                    epoch: self.epoch,
                },
            },
        })
    }
}
