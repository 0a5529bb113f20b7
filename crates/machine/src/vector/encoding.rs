//! Fields of vector instructions: "Vector Instruction Formats".

/// An encoding of one of the opcodes OP-V, OP-VE, LOAD-FP and STORE-FP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(pub u32);

impl Encoding {
    /// True of the opcode OP-VE, false of OP-V.
    #[must_use]
    pub const fn is_crypto(self) -> bool {
        self.0 & 0x7f == 0x77
    }

    /// Tests whether an encoding of OP-V is VSETVL, VSETVLI or VSETIVLI.
    #[must_use]
    pub const fn is_configuration(self) -> bool {
        !self.is_crypto() && self.funct3() == category::CONFIGURE
    }

    /// vd, vs3 of a store, or rd.
    #[must_use]
    pub const fn vd(self) -> u8 {
        (self.0 >> 7 & 31) as u8
    }

    /// vs1, rs1 or the immediate's five bits.
    #[must_use]
    pub const fn vs1(self) -> u8 {
        (self.0 >> 15 & 31) as u8
    }

    /// vs2 or rs2.
    #[must_use]
    pub const fn vs2(self) -> u8 {
        (self.0 >> 20 & 31) as u8
    }

    /// True if v0 masks elements: vm is clear.
    #[must_use]
    pub const fn is_masked(self) -> bool {
        self.0 >> 25 & 1 == 0
    }

    /// funct6.
    #[must_use]
    pub const fn funct6(self) -> u8 {
        (self.0 >> 26) as u8
    }

    /// funct3: kind of operands, or the width of a load or store.
    #[must_use]
    pub const fn funct3(self) -> u8 {
        (self.0 >> 12 & 7) as u8
    }

    /// The immediate of five bits, sign-extended.
    #[must_use]
    pub const fn immediate(self) -> i64 {
        ((self.0 << 12).cast_signed() >> 27) as i64
    }
}

/// Kinds of operands: funct3 of OP-V.
pub mod category {
    /// OPIVV: integer vectors.
    pub const INTEGER_VECTOR: u8 = 0;
    /// OPFVV: floating-point vectors.
    pub const FLOAT_VECTOR: u8 = 1;
    /// OPMVV: vectors, multiplications and masks.
    pub const MASK_VECTOR: u8 = 2;
    /// OPIVI: an immediate.
    pub const INTEGER_IMMEDIATE: u8 = 3;
    /// OPIVX: an integer register.
    pub const INTEGER_SCALAR: u8 = 4;
    /// OPFVF: a floating-point register.
    pub const FLOAT_SCALAR: u8 = 5;
    /// OPMVX: an integer register.
    pub const MASK_SCALAR: u8 = 6;
    /// OPCFG: VSETVLI and its likes.
    pub const CONFIGURE: u8 = 7;
}

/// The instruction is reserved, or its operands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_formats_say() {
        // vadd.vi v3, v5, -2, v0.t
        let encoding = Encoding(0x005f_31d7);
        assert_eq!((encoding.vd(), encoding.vs2(), encoding.vs1()), (3, 5, 30));
        assert_eq!(encoding.immediate(), -2);
        assert!(encoding.is_masked());
        assert_eq!(encoding.funct6(), 0);
        assert_eq!(encoding.funct3(), category::INTEGER_IMMEDIATE);
    }
}
