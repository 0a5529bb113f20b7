//! Where the execution loop stands among decoded instructions.

use crate::instruction::{CodeIndex, Instruction, Operation};

/// The index of a decoded instruction.
#[inline(always)]
pub(super) fn index_of(base: *const Instruction, at: *const Instruction) -> CodeIndex {
    // SAFETY: both point into the code cache's one allocation.
    unsafe { at.offset_from(base) as CodeIndex }
}

/// The offset in the block of the instruction that comes next.
#[inline(never)]
pub(super) fn next_offset(next: *const Instruction) -> u64 {
    // SAFETY: the instruction before `next` does not end its block, so there is one here.
    let instruction = unsafe { next.read() };
    match instruction.operation {
        Operation::FallThrough => i64::from(instruction.immediate) as u64,
        _ => u64::from(instruction.offset),
    }
}
