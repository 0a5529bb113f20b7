//! Integer registers, widths of memory accesses, and addresses of words.

/// An integer register, `x0` to `x31`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(u8);

impl Register {
    /// Register whose number is in the low five bits of `field`.
    #[must_use]
    pub const fn from_field(field: u32) -> Self {
        Self((field & 0x1f) as u8)
    }

    /// Register that a three-bit field of a compressed instruction names: `x8` to `x15`.
    #[must_use]
    pub const fn from_short_field(field: u32) -> Self {
        Self(8 + (field & 7) as u8)
    }

    /// Number, below 32.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// Returns true for `x0`, which reads as zero and takes no value.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// One byte.
    Byte,
    /// Two bytes.
    Half,
    /// Four bytes.
    Word,
    /// Eight bytes.
    Double,
}

impl Width {
    /// Width whose base-two logarithm is in the low two bits of `field`.
    #[must_use]
    pub const fn from_field(field: u32) -> Self {
        match field & 3 {
            0 => Self::Byte,
            1 => Self::Half,
            2 => Self::Word,
            _ => Self::Double,
        }
    }

    /// Number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }

    /// Low bytes of `value` that this width keeps.
    #[must_use]
    pub const fn truncate(self, value: u64) -> u64 {
        match self {
            Self::Byte => value as u8 as u64,
            Self::Half => value as u16 as u64,
            Self::Word => value as u32 as u64,
            Self::Double => value,
        }
    }

    /// Register value that a load of this width leaves.
    #[must_use]
    pub const fn extend(self, raw: u64, signed: bool) -> u64 {
        let raw = self.truncate(raw);
        match (signed, self) {
            (true, Self::Byte) => raw as i8 as u64,
            (true, Self::Half) => raw as i16 as u64,
            (true, Self::Word) => raw as i32 as u64,
            _ => raw,
        }
    }
}

/// Address of a watched word, as the code gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordAddress {
    /// Address in the register, plus the offset.
    Register(Register, i64),
    /// Guest-virtual address.
    Fixed(u64),
}
