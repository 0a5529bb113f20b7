//! Instructions: what they are called, how they are encoded, and their decoded form.

mod compressed;
mod decode;
mod float;
mod may_be;
mod operation;

pub use compressed::expand;
pub use decode::decode;
pub use float::{FloatKind, FloatOperation, Precision, decode_float};
pub use operation::Operation;

/// The register index that stands for a discarded result: a decoded write to `x0` goes there.
pub const DISCARD: u8 = 32;

/// The index of a decoded instruction among all that are kept. 0 is [`Operation::Stale`] and stands for "not known".
pub type CodeIndex = u32;

/// A place in translated code: a jump that does not know its target yet, or where to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Where in the buffer: a jump's displacement, or an instruction.
    pub place: u32,
    /// Which filling of the buffer it belongs to.
    pub epoch: u64,
}

/// A decoded instruction, as the execution loop reads it: 16 bytes, no pointers.
///
/// `immediate` holds, by operation: the sign-extended immediate; for a branch or jump the target
/// relative to the *start of the block*; for an instruction that executes out of line the raw
/// 32-bit encoding; for a floating-point instruction the packed form of [`FloatOperation::pack`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Operation.
    pub operation: Operation,
    /// Destination register, [`DISCARD`] for `x0` where it is an integer register.
    pub rd: u8,
    /// First source register.
    pub rs1: u8,
    /// Second source register, or the length of a jump in bytes.
    pub rs2: u8,
    /// How many instructions of the block have retired once this one has, 1..=255.
    pub count: u8,
    /// Byte offset of the instruction from the start of its block.
    pub offset: u16,
    /// See the type's description.
    pub immediate: i32,
    /// For a jump or branch inside the page: the decoded successor, 0 while it is not known.
    pub link: CodeIndex,
}

impl Instruction {
    /// An instruction without operands.
    #[must_use]
    pub const fn bare(operation: Operation) -> Self {
        Self {
            operation,
            rd: DISCARD,
            rs1: 0,
            rs2: 0,
            count: 0,
            offset: 0,
            immediate: 0,
            link: 0,
        }
    }
}

const _: () = assert!(size_of::<Instruction>() == 16);
