//! How translated code is left.

use crate::instruction::CodeIndex;

/// Bytes of `Translator::outside`, which stands before each block.
pub const OUTSIDE: u32 = 15;

/// Kinds of [`Left`](crate::native::Left), as translated code says them: the instruction in bits 23:0, the site in bits 55:24.
pub mod kind {
    pub const BEFORE: u64 = 0;
    pub const OUTSIDE: u64 = 1;
    pub const BEHIND: u64 = 2;
    pub const LIMIT: u64 = 3;
}

pub const fn answer(kind: u64, at: CodeIndex, site: u32) -> u64 {
    kind << 56 | (site as u64) << 24 | at as u64
}

/// Common ends of translated code, as offsets of the buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// Leaves with the answer in RAX.
    pub leave: u32,
    /// Leaves with [`kind::BEHIND`] without a site.
    pub behind: u32,
}
