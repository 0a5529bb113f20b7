//! Position of the execution loop among decoded instructions, and how the loop goes on from there.

use super::Exit;
use crate::hart::{Cause, Exception, Hart};
use crate::instruction::{CodeIndex, Instruction, Operation};
use crate::memory::StoreOutcome;

/// The index of a decoded instruction.
#[inline(always)]
pub(super) fn index_of(base: *const Instruction, at: *const Instruction) -> CodeIndex {
    // SAFETY: both point into the code cache's one allocation.
    unsafe { at.offset_from(base) as CodeIndex }
}

/// How the loop goes on behind an instruction.
pub(super) enum Step {
    /// With the next instruction of the block.
    Next,
    /// With another block.
    Leave(Jump),
    /// Not at all: all is noted.
    End(Exit),
}

/// End of a block.
pub(super) struct Jump {
    /// Virtual address of the next block.
    pub target: u64,
    /// Instructions retired since the start of the block.
    pub count: u8,
    /// The decoded target, 0 while it is not known.
    pub link: CodeIndex,
    /// The instruction that keeps the link; null for none.
    pub from: *const Instruction,
}

impl Jump {
    /// A jump whose target is looked up each time.
    #[inline(always)]
    pub const fn unlinked(target: u64, count: u8) -> Self {
        Self {
            target,
            count,
            link: 0,
            from: std::ptr::null(),
        }
    }
}

/// A decoded instruction in its block.
///
/// Fields are read one by one where they are needed, through a raw pointer: few operations need all of them, and a store may
/// mark the first instruction of the block that runs.
#[derive(Clone, Copy)]
pub(super) struct Position {
    base: *const Instruction,
    here: *const Instruction,
    block: u64,
}

impl Position {
    /// The instruction at `here`, of the block at the virtual address `block`.
    ///
    /// # Safety
    /// `here` is a decoded instruction of a block in the code cache, whose instructions begin at `base`. The position is not used
    /// after the loop has left the block.
    #[inline(always)]
    pub const unsafe fn new(
        base: *const Instruction,
        here: *const Instruction,
        block: u64,
    ) -> Self {
        Self { base, here, block }
    }

    /// The whole instruction.
    #[inline(always)]
    pub fn instruction(self) -> Instruction {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { self.here.read() }
    }

    /// The instruction in its place, for operations that store nothing.
    #[inline(always)]
    pub const fn borrowed<'a>(self) -> &'a Instruction {
        // SAFETY: a decoded instruction, see `new`; nothing changes it while the operation only computes.
        unsafe { &*self.here }
    }

    #[inline(always)]
    pub const fn operation(self) -> Operation {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).operation }
    }

    #[inline(always)]
    pub const fn rd(self) -> usize {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).rd as usize }
    }

    #[inline(always)]
    pub const fn rs1(self) -> usize {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).rs1 as usize }
    }

    #[inline(always)]
    pub const fn rs2(self) -> usize {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).rs2 as usize }
    }

    /// Instructions of the block that have retired once this one has.
    #[inline(always)]
    pub const fn count(self) -> u8 {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).count }
    }

    #[inline(always)]
    const fn offset(self) -> u64 {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).offset as u64 }
    }

    #[inline(always)]
    const fn link(self) -> CodeIndex {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).link }
    }

    /// The immediate as it is decoded.
    #[inline(always)]
    pub const fn field(self) -> i32 {
        // SAFETY: a decoded instruction, see `new`.
        unsafe { (*self.here).immediate }
    }

    /// The immediate, sign-extended.
    #[inline(always)]
    pub const fn immediate(self) -> u64 {
        self.field() as i64 as u64
    }

    /// Index of the instruction.
    #[inline(always)]
    pub fn index(self) -> CodeIndex {
        index_of(self.base, self.here)
    }

    /// Virtual address of the block.
    #[inline(always)]
    pub const fn block(self) -> u64 {
        self.block
    }

    /// Virtual address of the instruction.
    #[inline(always)]
    pub const fn pc(self) -> u64 {
        self.block.wrapping_add(self.offset())
    }

    /// Virtual address behind a jump, whose length in bytes is in the place of rs2.
    #[inline(always)]
    pub const fn behind_jump(self) -> u64 {
        self.block.wrapping_add(self.offset() + self.rs2() as u64)
    }

    /// Virtual address behind an instruction of 4 bytes.
    #[inline(always)]
    pub const fn behind(self) -> u64 {
        self.block.wrapping_add(self.offset() + 4)
    }

    /// Leaves the block for an address that the instruction may link to.
    #[inline(always)]
    pub const fn linked(self, target: u64, count: u8) -> Step {
        Step::Leave(Jump {
            target,
            count,
            link: self.link(),
            from: self.here,
        })
    }

    /// Brings a hart up to date with the instructions before this one.
    #[inline(always)]
    pub fn retire_before(self, hart: &mut Hart) {
        let done = u64::from(self.count()) - 1;
        hart.retired += done;
        hart.cycles += done;
        hart.pc = self.pc();
    }

    /// Ends the loop at this instruction, which has raised an exception.
    #[inline(always)]
    pub fn trap(self, hart: &mut Hart) -> Step {
        self.retire_before(hart);
        Step::End(Exit::Trap)
    }

    /// Ends the loop at this instruction, which is illegal. Its immediate is its encoding.
    #[inline(always)]
    pub fn illegal(self, hart: &mut Hart) -> Step {
        let encoding = u64::from(self.field().cast_unsigned());
        hart.raise(Exception::new(Cause::IllegalInstruction, encoding));
        self.trap(hart)
    }

    /// Goes on behind a store of an instruction that is not the last of its block, which may have discarded the block.
    #[inline(always)]
    pub fn stored<E>(self, hart: &mut Hart, outcome: Result<StoreOutcome, E>) -> Step {
        match outcome {
            Ok(outcome) if outcome.discarded_current => {
                // SAFETY: the instruction does not end its block, so one follows.
                let next = unsafe { next_offset(self.here.add(1)) };
                let next = self.block.wrapping_add(next);
                Step::Leave(Jump::unlinked(next, self.count()))
            }
            Ok(_) => Step::Next,
            Err(_) => self.trap(hart),
        }
    }
}

/// The offset in the block of the instruction that comes next.
///
/// # Safety
/// `next` is a decoded instruction.
#[inline(never)]
unsafe fn next_offset(next: *const Instruction) -> u64 {
    // SAFETY: the caller's.
    let instruction = unsafe { next.read() };
    match instruction.operation {
        Operation::FallThrough => i64::from(instruction.immediate) as u64,
        _ => u64::from(instruction.offset),
    }
}
