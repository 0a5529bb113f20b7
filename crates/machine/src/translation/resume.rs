//! Where a hart goes on after the end of its turn.

use crate::instruction::{CodeIndex, Site};

/// How a hart goes on that has stopped at the end of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resume {
    /// The virtual address of the next instruction.
    pub pc: u64,
    /// The context that leads there: that of jump targets.
    pub tag: u32,
    /// The jump that leads there in its page; 0 if another one does.
    pub from: CodeIndex,
    /// Where translated code goes on.
    pub site: Option<Site>,
}
