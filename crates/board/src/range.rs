//! Ranges of physical addresses.

/// A range of physical addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
}

impl Range {
    /// One past the last address.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.size)
    }
}
