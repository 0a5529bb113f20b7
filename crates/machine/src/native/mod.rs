//! Blocks translated to the host's own instructions.
//!
//! What the [interpreter](crate::execute) does is what is right, and all that there is on hosts without a
//! translator. On x86-64 under Linux, blocks that are executed often are translated. A translation
//! does what is frequent: integer arithmetic, branches, loads and stores whose page the host TLB knows (and,
//! in the measured gear, whose line the filters vouch for), and jumps to targets that are known. At
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

use crate::code::CodeIndex;

/// A place in translated code: a jump that does not know its target yet, or where to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Where in the buffer: a jump's displacement, or an instruction.
    pub place: u32,
    /// Which filling of the buffer it belongs to.
    pub epoch: u64,
}

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

/// Places of the filters of the timing models, in the measured gear.
#[derive(Debug, Clone, Copy)]
pub struct FilterTables {
    /// Of pages of data.
    pub data_pages: *const u8,
    /// Of pages of code.
    pub code_pages: *const u8,
    /// Of lines to load.
    pub loads: *const u8,
    /// Of lines to store to.
    pub stores: *const u8,
    /// Of lines to fetch.
    pub fetches: *const u8,
}

impl FilterTables {
    /// In the fast gear, where translated code does not look at them.
    pub const NONE: Self = Self {
        data_pages: std::ptr::null(),
        code_pages: std::ptr::null(),
        loads: std::ptr::null(),
        stores: std::ptr::null(),
        fetches: std::ptr::null(),
    };
}
