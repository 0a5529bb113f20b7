//! How long a hart's vector registers are.

use serde::{Deserialize, Serialize};

/// VLEN: bits of a vector register ("V" extension, "Implementation-defined Constant Parameters"). A hart without a vector
/// unit has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorLength(u16);

impl VectorLength {
    /// A hart without a vector unit.
    pub const NONE: Self = Self(0);
    /// Least length: "V" demands Zvl128b.
    pub const MIN: u16 = 128;
    /// Greatest length of this machine.
    pub const MAX: u16 = 1024;

    /// A length in bits: zero for none, or a power of two from [`Self::MIN`] to [`Self::MAX`]; `None` for others.
    #[must_use]
    pub const fn new(bits: u16) -> Option<Self> {
        match bits {
            0 | 128 | 256 | 512 | 1024 => Some(Self(bits)),
            _ => None,
        }
    }

    /// Bits of a register.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Bytes of a register: vlenb.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0 as usize / 8
    }

    /// Tests whether there is a vector unit.
    #[must_use]
    pub const fn exists(self) -> bool {
        self.0 != 0
    }
}
