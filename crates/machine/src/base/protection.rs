//! How much physical memory protection a hart has.

use serde::{Deserialize, Serialize};

/// How many PMP entries a hart has (privileged architecture, "Physical Memory Protection CSRs"): 16 or 64. The specification also
/// allows none, with which no firmware could protect itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PmpEntries(u8);

impl PmpEntries {
    /// Smallest number of entries.
    pub const MIN: u8 = 16;
    /// Largest number of entries.
    pub const MAX: u8 = 64;

    /// So many; `None` if there cannot be so many.
    #[must_use]
    pub const fn new(entries: u8) -> Option<Self> {
        match entries {
            Self::MIN | Self::MAX => Some(Self(entries)),
            _ => None,
        }
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0 as usize
    }
}

impl Default for PmpEntries {
    fn default() -> Self {
        Self(Self::MIN)
    }
}
