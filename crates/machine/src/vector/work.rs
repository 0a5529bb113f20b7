//! Work of an instruction for the unit, from which its cost follows.

use super::encoding::{Encoding, category};
use super::transfer::Transfer;
use super::unit::VectorUnit;

/// Classes of instructions that take different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostClass {
    /// VSETVLI, VSETIVLI and VSETVL.
    Configure,
    /// Integer arithmetic but for what follows, and moves.
    Integer,
    /// Integer multiplications, with carries or without.
    Multiply,
    /// Integer divisions and remainders.
    Divide,
    /// Floating point but for what follows.
    Float,
    /// Floating-point divisions and square roots.
    FloatDivide,
    /// Slides, and gathers by a scalar.
    Slide,
    /// Gathers by a vector, and VCOMPRESS: any element may come from anywhere.
    Gather,
    /// Reductions.
    Reduction,
    /// Instructions that make, change or count masks.
    Mask,
    /// Cryptography.
    Crypto,
}

/// Work of an instruction that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Its class.
    pub class: CostClass,
    /// Bits of its widest register group, whatever vl is.
    pub bits: u64,
    /// Elements of the body.
    pub elements: u64,
}

/// Work of a load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movement {
    /// So many bytes one after the other.
    Bytes(u64),
    /// So many elements, each with an address of its own.
    Elements(u64),
}

/// How many bits are worked on.
enum Extent {
    /// A group.
    Group,
    /// A group with elements of twice SEW.
    Wide,
    /// So many registers.
    Registers(u64),
}

impl Work {
    /// Work of an instruction of the opcodes OP-V and OP-VE, before it is executed.
    #[must_use]
    pub const fn of(unit: &VectorUnit, encoding: Encoding) -> Self {
        let (class, extent) = match encoding.funct3() {
            _ if encoding.is_crypto() => (CostClass::Crypto, Extent::Group),
            category::CONFIGURE => (CostClass::Configure, Extent::Registers(0)),
            category::FLOAT_VECTOR | category::FLOAT_SCALAR => float(encoding),
            category::MASK_VECTOR | category::MASK_SCALAR => multiply_or_mask(encoding),
            _ => integer(encoding),
        };
        let register = unit.length().bits() as u64;
        let bits = match (extent, unit.vtype().multiplier()) {
            (Extent::Registers(count), _) => register * count,
            (Extent::Wide, multiplier) if multiplier >= 0 => register << (multiplier + 1),
            (Extent::Group, multiplier) if multiplier >= 0 => register << multiplier,
            (Extent::Wide, multiplier) => register >> -(multiplier + 1),
            (Extent::Group, multiplier) => register >> -multiplier,
        };
        let elements = unit.vl().saturating_sub(unit.vstart as usize) as u64;
        Self {
            class,
            bits,
            elements,
        }
    }
}

const fn float(encoding: Encoding) -> (CostClass, Extent) {
    let by_vector = encoding.funct3() == category::FLOAT_VECTOR;
    match encoding.funct6() {
        0x01 | 0x03 | 0x05 | 0x07 if by_vector => (CostClass::Reduction, Extent::Group),
        0x31 | 0x33 if by_vector => (CostClass::Reduction, Extent::Group),
        0x0e | 0x0f => (CostClass::Slide, Extent::Group),
        // VFMV.F.S and VFMV.S.F.
        0x10 => (CostClass::Integer, Extent::Registers(1)),
        // VFMERGE and VFMV.V.F.
        0x17 => (CostClass::Integer, Extent::Group),
        0x18..=0x1f => (CostClass::Mask, Extent::Group),
        // Conversions between a width and twice that.
        0x12 if encoding.vs1() >> 3 != 0 => (CostClass::Float, Extent::Wide),
        // VFSQRT.
        0x13 if encoding.vs1() == 0 => (CostClass::FloatDivide, Extent::Group),
        0x20 | 0x21 => (CostClass::FloatDivide, Extent::Group),
        0x30..=0x3f => (CostClass::Float, Extent::Wide),
        _ => (CostClass::Float, Extent::Group),
    }
}

const fn multiply_or_mask(encoding: Encoding) -> (CostClass, Extent) {
    let by_vector = encoding.funct3() == category::MASK_VECTOR;
    match encoding.funct6() {
        0x00..=0x07 => (CostClass::Reduction, Extent::Group),
        0x0c | 0x0d => (CostClass::Multiply, Extent::Group),
        0x0e | 0x0f => (CostClass::Slide, Extent::Group),
        // VMV.X.S and VMV.S.X.
        0x10 if encoding.vs1() == 0 || !by_vector => (CostClass::Integer, Extent::Registers(1)),
        // VCPOP and VFIRST.
        0x10 => (CostClass::Mask, Extent::Registers(1)),
        // VMSBF, VMSOF and VMSIF.
        0x14 if encoding.vs1() < 0x10 => (CostClass::Mask, Extent::Registers(1)),
        // VIOTA and VID.
        0x14 => (CostClass::Mask, Extent::Group),
        0x17 => (CostClass::Gather, Extent::Group),
        0x18..=0x1f => (CostClass::Mask, Extent::Registers(1)),
        0x20..=0x23 => (CostClass::Divide, Extent::Group),
        0x24..=0x2f => (CostClass::Multiply, Extent::Group),
        0x30..=0x37 => (CostClass::Integer, Extent::Wide),
        0x38..=0x3f => (CostClass::Multiply, Extent::Wide),
        _ => (CostClass::Integer, Extent::Group),
    }
}

const fn integer(encoding: Encoding) -> (CostClass, Extent) {
    let kind = encoding.funct3();
    match encoding.funct6() {
        0x0c | 0x0e if kind == category::INTEGER_VECTOR => (CostClass::Gather, Extent::Group),
        0x0c | 0x0e | 0x0f => (CostClass::Slide, Extent::Group),
        // VMADC and VMSBC, comparisons.
        0x11 | 0x13 | 0x18..=0x1f => (CostClass::Mask, Extent::Group),
        0x30 | 0x31 => (CostClass::Reduction, Extent::Group),
        0x27 if kind == category::INTEGER_IMMEDIATE => {
            // Whole registers: one less than their number stands in the place of vs1.
            let registers = encoding.vs1() as u64 + 1;
            (CostClass::Integer, Extent::Registers(registers))
        }
        // VSMUL.
        0x27 => (CostClass::Multiply, Extent::Group),
        // Narrowing shifts and clips, VWSLL.
        0x2c..=0x2f | 0x35 => (CostClass::Integer, Extent::Wide),
        _ => (CostClass::Integer, Extent::Group),
    }
}

impl Transfer {
    /// Work of the elements from `first` on, up to `end`.
    #[must_use]
    pub fn movement(&self, first: usize, end: usize) -> Movement {
        let elements = end.saturating_sub(first) as u64 * u64::from(self.fields);
        if self.is_in_order() {
            Movement::Bytes(elements * self.width.bytes() as u64)
        } else {
            Movement::Elements(elements)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::VectorLength;
    use crate::vector::Vtype;

    fn work(vtype: u64, raw: u32) -> (CostClass, u64) {
        let mut unit = VectorUnit::new(VectorLength::new(256).expect("a length"));
        unit.configure(Vtype::from_bits(vtype, unit.length()), u64::MAX);
        let work = Work::of(&unit, Encoding(raw));
        (work.class, work.bits)
    }

    #[test]
    fn instructions_have_their_class_and_extent() {
        // vtype is e32 with m1, m4 and mf2. Encodings are those of LLVM's assembler.
        let (m1, m4, half) = (0x10, 0x12, 0x17);
        for (vtype, raw, expected) in [
            (m1, 0x0220_81d7, (CostClass::Integer, 256)), // vadd.vv v3, v2, v1
            (m4, 0x0280_8457, (CostClass::Integer, 1024)), // vadd.vv v8, v8, v1
            (half, 0x0220_81d7, (CostClass::Integer, 128)), // vadd.vv v3, v2, v1
            (m1, 0xc220_a257, (CostClass::Integer, 512)), // vwaddu.vv v4, v2, v1
            (m1, 0x8620_a1d7, (CostClass::Divide, 256)),  // vdiv.vv v3, v2, v1
            (m1, 0x9620_a1d7, (CostClass::Multiply, 256)), // vmul.vv v3, v2, v1
            (m1, 0x3220_81d7, (CostClass::Gather, 256)),  // vrgather.vv v3, v2, v1
            (m1, 0x3a20_b1d7, (CostClass::Slide, 256)),   // vslideup.vi v3, v2, 1
            (m1, 0x6220_81d7, (CostClass::Mask, 256)),    // vmseq.vv v3, v2, v1
            (m4, 0x4228_22d7, (CostClass::Mask, 256)),    // vcpop.m t0, v2
            (m1, 0x0220_a1d7, (CostClass::Reduction, 256)), // vredsum.vs v3, v2, v1
            (m1, 0x8220_91d7, (CostClass::FloatDivide, 256)), // vfdiv.vv v3, v2, v1
            (m1, 0xb220_91d7, (CostClass::Float, 256)),   // vfmacc.vv v3, v1, v2
            (m4, 0x9f03_b457, (CostClass::Integer, 2048)), // vmv8r.v v8, v16
            (m1, 0xba20_a1f7, (CostClass::Crypto, 256)),  // vsha2ch.vv v3, v2, v1
            (m1, 0x0d00_72d7, (CostClass::Configure, 0)), // vsetvli t0, zero, e32
        ] {
            assert_eq!(work(vtype, raw), expected, "{raw:#010x}");
        }
    }
}
