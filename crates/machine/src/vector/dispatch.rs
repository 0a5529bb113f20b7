//! From an encoding of OP-V to the group of instructions that it belongs to: "Vector Instruction Listing".

use super::encoding::{Reserved, category};
use super::issue::{Checked, Immediate, Issue, Output, Second};

impl Issue<'_> {
    /// Executes an instruction of the opcodes OP-V and OP-VE.
    ///
    /// # Errors
    /// [`Reserved`]: the instruction is illegal, and nothing has happened.
    pub fn execute(&mut self) -> Result<Output, Reserved> {
        if !self.unit.exists() {
            return Err(Reserved);
        }
        if self.encoding.is_crypto() {
            return self.crypto();
        }
        match self.encoding.funct3() {
            category::CONFIGURE => self.configure(),
            category::FLOAT_VECTOR | category::FLOAT_SCALAR => self.float(),
            category::MASK_VECTOR | category::MASK_SCALAR => self.multiply_or_mask(),
            _ if self.exists_with_operands() => self.integer_group(),
            _ => Err(Reserved),
        }
    }

    /// Tests whether an instruction of OPIVV, OPIVX and OPIVI has a form with these operands.
    const fn exists_with_operands(&self) -> bool {
        let (vector, scalar, immediate) = match self.encoding.funct6() {
            // Subtractions, minima and maxima, VSBC and VMSBC, VMSLT, VSSUB.
            0x02 | 0x04..=0x07 | 0x12 | 0x13 | 0x1a | 0x1b | 0x22 | 0x23 => (true, true, false),
            // VRSUB, VSLIDEDOWN, VMSGT.
            0x03 | 0x0f | 0x1e | 0x1f => (false, true, true),
            // VWREDSUM.
            0x30 | 0x31 => (true, false, false),
            _ => (true, true, true),
        };
        match self.encoding.funct3() {
            category::INTEGER_VECTOR => vector,
            category::INTEGER_SCALAR => scalar,
            _ => immediate,
        }
    }

    fn integer_group(&mut self) -> Checked {
        let kind = self.encoding.funct3();
        match self.encoding.funct6() {
            0x0c => self.gather(),
            0x0e if kind == category::INTEGER_VECTOR => self.gather_halves(),
            0x0e => self.slide_up(),
            0x0f => self.slide_down(),
            0x10 => self.with_carry(false),
            0x11 => self.carry_out(false),
            0x12 => self.with_carry(true),
            0x13 => self.carry_out(true),
            0x17 => self.merge(),
            0x27 if kind == category::INTEGER_IMMEDIATE => self.move_registers(),
            0x2c => self.narrowing_shift(false),
            0x2d => self.narrowing_shift(true),
            0x30 => self.reduce_wide(false),
            0x31 => self.reduce_wide(true),
            0x01 | 0x14 | 0x15 | 0x35 => self.bit_operation().unwrap_or(Err(Reserved)),
            0x20..=0x23 | 0x27 | 0x2a | 0x2b | 0x2e | 0x2f => {
                self.fixed_point().unwrap_or(Err(Reserved))
            }
            _ => self.integer().unwrap_or(Err(Reserved)),
        }
    }

    /// OPMVV and OPMVX.
    fn multiply_or_mask(&mut self) -> Checked {
        match self.encoding.funct6() {
            0x0c => return self.carryless_multiply(false),
            0x0d => return self.carryless_multiply(true),
            _ => {}
        }
        let by_kind = match self.second(Immediate::Signed) {
            Second::Vector(_) => self.vector_only(),
            Second::Scalar(value) => self.scalar_only(value),
        };
        let found = by_kind.or_else(|| match self.encoding.funct6() {
            0x08..=0x0b => self.average(),
            0x20..=0x2f => self.multiply(),
            _ => self.widening(),
        });
        found.unwrap_or(Err(Reserved))
    }

    fn vector_only(&mut self) -> Option<Checked> {
        Some(match self.encoding.funct6() {
            0x00..=0x07 => return self.reduce(),
            0x10 => self.mask_to_integer(),
            0x12 if (2..=7).contains(&self.encoding.vs1()) => self.extend(),
            0x12 => self.bit_unary(),
            0x14 => self.mask_unary(),
            0x17 => self.compress(),
            0x18..=0x1f => self.mask_logical(),
            _ => return None,
        })
    }

    fn scalar_only(&mut self, value: u64) -> Option<Checked> {
        Some(match self.encoding.funct6() {
            0x0e => self.slide_up_one(value),
            0x0f => self.slide_down_one(value),
            0x10 if self.encoding.vs2() == 0 => self.set_first(value),
            _ => return None,
        })
    }
}
