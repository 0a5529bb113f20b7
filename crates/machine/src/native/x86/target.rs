//! The table by which translated code finds blocks.

/// log2 of the places for blocks by where they are in RAM.
pub const TARGETS_SHIFT: u32 = 16;

/// A translated block.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Target {
    /// The bits of its offset in RAM that its place does not tell.
    pub tag: u32,
    /// Where its translation is entered.
    pub place: u32,
}

impl Target {
    /// No offset in RAM has this tag: RAM is at most 256 GiB.
    pub const EMPTY: Self = Self {
        tag: u32::MAX,
        place: 0,
    };
}
