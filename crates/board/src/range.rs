//! Ranges of physical addresses.

use core::fmt;

use riscv::imsic::PAGE_BYTES;

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

    /// Tests whether the range is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.size == 0
    }

    /// Tests whether every byte of `other` belongs to this range. An empty range lies in every range that its start touches.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }

    /// Tests whether the ranges share a byte.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && self.start < other.end()
            && other.start < self.end()
    }

    /// The whole pages in which the range lies; the last page of the address space is not reached.
    #[must_use]
    pub const fn pages(self) -> Self {
        let start = self.start & !(PAGE_BYTES - 1);
        let end = self.end().saturating_add(PAGE_BYTES - 1) & !(PAGE_BYTES - 1);
        Self {
            start,
            size: end.saturating_sub(start),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start, self.end())
    }
}
