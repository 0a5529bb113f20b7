//! Blocks translated to the host's own instructions.
//!
//! What the [interpreter](crate::execute) does is what is right, and all that there is on hosts without a
//! translator. On x86-64 under Linux, blocks that are executed often are translated. A translation
//! does what is frequent: integer arithmetic, branches, loads and stores whose page the host TLB knows (and,
//! in the timing mode, whose line the filters vouch for), and jumps to targets that are known. At
//! everything else it leaves, with all of the hart's state where the interpreter keeps it and before
//! anything of that instruction has happened. The interpreter executes the instruction, and the translation
//! goes on behind it. So there is one place that traps, walks, asks models and changes what is decoded, and no
//! figure depends on what is translated.
//!
//! Translated code calls nothing, and writes nothing but `x`, `cycles` and `retired` of its hart, and RAM in
//! pages that the hart's table of stores leads to.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use x86::Native;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod absent;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use absent::Native;

pub use crate::instruction::Site;
pub use crate::timing::FilterTables;

use crate::instruction::CodeIndex;

/// Room for decoded instructions, each of which has a place in the translations: 16 bytes each.
pub(crate) const INSTRUCTION_ROOM: usize = 3 << 20;

/// How translated code was left. `block` is the virtual address of the block, in all variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Before an instruction, which the interpreter executes next.
    Before {
        /// The instruction.
        at: CodeIndex,
        /// Its block's address.
        block: u64,
    },
    /// The same before the first of a block whose fetch has not been measured yet.
    Outside {
        /// The instruction.
        at: CodeIndex,
        /// Its block's address.
        block: u64,
        /// The offset in RAM of the line that it is in.
        offset: u64,
    },
    /// At the end of a block, all of it accounted for.
    Behind {
        /// Where to go on.
        target: u64,
        /// The jump that leads there, if it stays in its page.
        from: Option<(CodeIndex, Site)>,
    },
    /// The same, with the hart's limit reached.
    Limit {
        /// Where to go on.
        target: u64,
        /// The jump that leads there, 0 if that leaves its page.
        from: CodeIndex,
        /// Where to go on.
        site: Site,
    },
}
