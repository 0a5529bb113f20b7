//! vtype: width of elements, and registers of a group.

use serde::{Deserialize, Serialize};

use crate::base::VectorLength;

/// Bits of the widest element: ELEN.
const ELEN: usize = 64;
/// vill, in a register of 64 bits.
const VILL: u64 = 1 << 63;
/// vlmul, vsew, vta and vma.
const FIELDS: u64 = 0xff;

/// Width of an element, as log2 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Width(u8);

impl Width {
    /// 8 bits.
    pub const BYTE: Self = Self(0);
    /// 16 bits.
    pub const HALF: Self = Self(1);
    /// 32 bits.
    pub const WORD: Self = Self(2);
    /// 64 bits.
    pub const DOUBLE: Self = Self(3);

    /// The width of 2 to the `log2` bytes, at most 8 of them.
    #[must_use]
    pub const fn new(log2: u8) -> Option<Self> {
        if log2 <= 3 { Some(Self(log2)) } else { None }
    }

    /// log2 of the bytes.
    #[must_use]
    pub const fn log2(self) -> u8 {
        self.0
    }

    /// Bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        1 << self.0
    }

    /// Bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u32 {
        8 << self.0
    }

    /// Twice as wide; `None` beyond ELEN.
    #[must_use]
    pub const fn twice(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }

    /// The value with all bits of an element set.
    #[inline]
    #[must_use]
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The low bits of a value, sign-extended.
    #[inline]
    #[must_use]
    pub const fn sign_extend(self, value: u64) -> i64 {
        let above = 64 - self.bits();
        (value << above).cast_signed() >> above
    }

    /// The low bits of a value.
    #[inline]
    #[must_use]
    pub const fn truncate(self, value: u64) -> u64 {
        value & self.mask()
    }
}

/// vtype with its fields taken apart; illegal after reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vtype(Option<u8>);

impl Vtype {
    /// The vtype that a value asks for on a hart of this VLEN: illegal if there is none ("Vector Type Illegal").
    ///
    /// A fraction of a register that holds one element is legal, which is more than the specification demands: it lets an
    /// implementation refuse SEW > LMUL x ELEN.
    #[must_use]
    pub const fn from_bits(value: u64, length: VectorLength) -> Self {
        if value & !FIELDS != 0 {
            return Self(None);
        }
        let vtype = Self(Some(value as u8));
        let is_reserved = value & 7 == 4 || value >> 3 & 7 > 3;
        if is_reserved || vtype.max_elements(length) == 0 {
            return Self(None);
        }
        vtype
    }

    /// The CSR's value.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self.0 {
            Some(fields) => fields as u64,
            None => VILL,
        }
    }

    /// SEW; `None` of an illegal vtype.
    #[must_use]
    pub const fn width(self) -> Option<Width> {
        match self.0 {
            Some(fields) => Width::new(fields >> 3 & 7),
            None => None,
        }
    }

    /// log2 of LMUL, -3 to 3; zero of an illegal vtype.
    #[must_use]
    pub const fn multiplier(self) -> i8 {
        match self.0 {
            // Three bits, sign-extended.
            Some(fields) => (fields << 5).cast_signed() >> 5,
            None => 0,
        }
    }

    /// VLMAX; zero of an illegal vtype.
    #[must_use]
    pub const fn max_elements(self, length: VectorLength) -> usize {
        let Some(width) = self.width() else {
            return 0;
        };
        elements(length, width, self.multiplier())
    }
}

/// Elements of a width in a group of 2 to the `multiplier` registers.
#[must_use]
pub const fn elements(length: VectorLength, width: Width, multiplier: i8) -> usize {
    let bits = if multiplier >= 0 {
        (length.bits() as usize) << multiplier
    } else {
        length.bits() as usize >> -multiplier
    };
    bits / width.bits() as usize
}

const _: () = assert!(ELEN == Width::DOUBLE.bits() as usize);

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: VectorLength = match VectorLength::new(256) {
        Some(length) => length,
        None => VectorLength::NONE,
    };

    #[test]
    fn fields_are_those_of_the_table() {
        let vtype = Vtype::from_bits(0b1101_0111, LENGTH);
        assert_eq!(vtype.width(), Some(Width::WORD));
        assert_eq!(vtype.multiplier(), -1);
        assert_eq!(vtype.max_elements(LENGTH), 4);
        assert_eq!(Vtype::from_bits(3, LENGTH).max_elements(LENGTH), 256);
    }

    #[test]
    fn reserved_fields_make_vtype_illegal() {
        // vlmul 4, vsew 4, a reserved bit, an eighth of a register for a doubleword, vill itself.
        for value in [4, 0x20, 0x100, 0b1_1101, VILL] {
            let vtype = Vtype::from_bits(value, LENGTH);
            assert_eq!((vtype.bits(), vtype.width()), (VILL, None), "{value:#x}");
        }
    }

    #[test]
    fn values_are_extended_from_their_width() {
        assert_eq!(Width::BYTE.sign_extend(0x1ff), -1);
        assert_eq!(Width::DOUBLE.sign_extend(u64::MAX), -1);
        assert_eq!(Width::HALF.truncate(u64::MAX), 0xffff);
    }
}
