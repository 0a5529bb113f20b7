//! Integer arithmetic of a single width: "Vector Integer Arithmetic Instructions".

use super::encoding::Reserved;
use super::group::{Group, Overlap};
use super::issue::{Checked, Immediate, Issue, Second, Sources};
use super::operand::{Operands, Which};
use super::vtype::Width;

/// Largest of the low bits of two values, or the least, as signed numbers.
const fn signed_choice(width: Width, a: u64, b: u64, larger: bool) -> u64 {
    let is_larger = width.sign_extend(a) > width.sign_extend(b);
    if is_larger == larger { a } else { b }
}

/// Bits of a shift amount that count.
const fn amount(width: Width, value: u64) -> u32 {
    value as u32 & (width.bits() - 1)
}

impl Issue<'_> {
    /// OPIVV, OPIVX and OPIVI of one width, by funct6; `None` of another kind of instruction.
    pub(super) fn integer(&mut self) -> Option<Checked> {
        use Immediate::{Signed, Unsigned};
        Some(match self.encoding.funct6() {
            0x00 => self.map(Signed, u64::wrapping_add),
            0x02 => self.map(Signed, u64::wrapping_sub),
            0x03 => self.map(Signed, |a, b| b.wrapping_sub(a)),
            0x04 => self.map(Signed, u64::min),
            0x05 => self.each(Signed, |of| signed_choice(of.width, of.a, of.b, false)),
            0x06 => self.map(Signed, u64::max),
            0x07 => self.each(Signed, |of| signed_choice(of.width, of.a, of.b, true)),
            0x09 => self.map(Signed, |a, b| a & b),
            0x0a => self.map(Signed, |a, b| a | b),
            0x0b => self.map(Signed, |a, b| a ^ b),
            0x25 => self.each(Unsigned, |of| of.a << amount(of.width, of.b)),
            0x28 => self.each(Unsigned, |of| of.a >> amount(of.width, of.b)),
            0x29 => self.each(Unsigned, |of| {
                (of.width.sign_extend(of.a) >> amount(of.width, of.b)).cast_unsigned()
            }),
            _ => return self.compare(),
        })
    }

    /// "Vector Integer Compare Instructions".
    fn compare(&mut self) -> Option<Checked> {
        Some(match self.encoding.funct6() {
            0x18 => self.relate(|of| of.a == of.b),
            0x19 => self.relate(|of| of.a != of.b),
            0x1a => self.relate(|of| of.a < of.b),
            0x1b => self.relate(|of| of.width.sign_extend(of.a) < of.width.sign_extend(of.b)),
            0x1c => self.relate(|of| of.a <= of.b),
            0x1d => self.relate(|of| of.width.sign_extend(of.a) <= of.width.sign_extend(of.b)),
            0x1e => self.relate(|of| of.a > of.b),
            0x1f => self.relate(|of| of.width.sign_extend(of.a) > of.width.sign_extend(of.b)),
            _ => return None,
        })
    }

    fn relate(&mut self, f: impl Fn(Operands) -> bool) -> Checked {
        self.each_to_mask(Immediate::Signed, Which::Active, f)
    }

    /// VADC and VSBC, whose mask is an operand: "Vector Integer Add-with-Carry / Subtract-with-Borrow Instructions".
    pub(super) fn with_carry(&mut self, subtracts: bool) -> Checked {
        if !self.encoding.is_masked() {
            return Err(Reserved);
        }
        self.select_each(|of| {
            let carry = u64::from(of.bit);
            if subtracts {
                of.a.wrapping_sub(of.b).wrapping_sub(carry)
            } else {
                of.a.wrapping_add(of.b).wrapping_add(carry)
            }
        })
    }

    /// `vd[i] = f(...)` of all elements of the body, with v0 as an operand.
    pub(super) fn select_each(&mut self, f: impl Fn(Operands) -> u64) -> Checked {
        let second = self.second(Immediate::Signed);
        if !self.is_checked {
            self.check(self.destination()?, &self.sources(second)?)?;
        }
        self.compute(second, Which::All, f)?;
        self.done()
    }

    /// VMADC and VMSBC: the carry or the borrow, with that of v0 if vm is clear.
    pub(super) fn carry_out(&mut self, subtracts: bool) -> Checked {
        self.each_to_mask(Immediate::Signed, Which::All, |of| {
            let carry = u128::from(of.bit);
            let (a, b) = (u128::from(of.a), u128::from(of.b));
            if subtracts {
                a < b + carry
            } else {
                (a + b + carry) >> of.width.bits() != 0
            }
        })
    }

    /// VMERGE with vm clear, VMV.V with vm set and vs2 zero.
    pub(super) fn merge(&mut self) -> Checked {
        if self.encoding.is_masked() {
            return self.select_each(|of| if of.bit { of.b } else { of.a });
        }
        if self.encoding.vs2() != 0 {
            return Err(Reserved);
        }
        let second = self.second(Immediate::Signed);
        let sources = match second {
            Second::Vector(register) => Sources::of(&[self.group(register)?]),
            Second::Scalar(_) => Sources::default(),
        };
        self.check(self.destination()?, &sources)?;
        self.compute(second, Which::All, |of| of.b)?;
        self.done()
    }

    /// VZEXT and VSEXT, by vs1: "Vector Integer Extension".
    pub(super) fn extend(&mut self) -> Checked {
        let operation = self.encoding.vs1();
        // 2 and 3 are an eighth of SEW, 6 and 7 half.
        let shrink = 4 - operation / 2;
        let width = self.width()?;
        let narrow = width.log2().checked_sub(shrink).ok_or(Reserved)?;
        let narrow = Width::new(narrow).ok_or(Reserved)?;
        let multiplier = self.multiplier() - shrink.cast_signed();
        let vs2 = self.encoding.vs2();
        let source = Group::new(vs2, narrow, multiplier);
        let masked = self.encoding.is_masked();
        self.check_all(self.destination()?, &[source], masked, Overlap::General)?;
        for index in self.body() {
            if self.is_active(index) {
                let value = self.unit.element(vs2, index, narrow);
                let value = if operation & 1 == 0 {
                    value
                } else {
                    narrow.sign_extend(value).cast_unsigned()
                };
                self.unit
                    .set_element(self.encoding.vd(), index, width, value);
            }
        }
        self.done()
    }
}
