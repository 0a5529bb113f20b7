//! Widening and narrowing integer arithmetic: "Vector Widening Integer Add/Subtract", "Vector Narrowing Integer Right Shift
//! Instructions", "Vector Widening Integer Multiply Instructions", "Vector Widening Integer Multiply-Add Instructions".

use super::issue::{Checked, Immediate, Issue, Second, Sources};
use super::vtype::Width;

/// Extends the low bits of a value to 64.
#[inline]
const fn extend(width: Width, value: u64, signed: bool) -> u64 {
    if signed {
        width.sign_extend(value).cast_unsigned()
    } else {
        width.truncate(value)
    }
}

impl Issue<'_> {
    /// `vd[i] = f(vd[i], vs2[i], second[i])` with vd twice as wide as SEW; operands are extended by their signs.
    pub(super) fn widen(
        &mut self,
        (signed2, signed1): (bool, bool),
        accumulates: bool,
        f: impl Fn(u64, u64, u64) -> u64,
    ) -> Checked {
        let second = self.second(Immediate::Unsigned);
        let mut sources = self.sources(second)?;
        let (width, wide) = (self.width()?, self.wide()?);
        let destination = self.wide_group(self.encoding.vd())?;
        if accumulates {
            sources.push(destination);
        }
        self.check(destination, &sources)?;
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        for index in self.body() {
            if self.is_active(index) {
                let a = extend(width, self.unit.element(vs2, index, width), signed2);
                let b = extend(width, self.second_element(second, index, width), signed1);
                let old = self.unit.element(vd, index, wide);
                self.unit.set_element(vd, index, wide, f(old, a, b));
            }
        }
        self.done()
    }

    /// `vd[i] = f(vs2[i], second[i])` with vd and vs2 twice as wide as SEW.
    fn widen_second(&mut self, signed: bool, f: impl Fn(u64, u64) -> u64) -> Checked {
        let second = self.second(Immediate::Unsigned);
        let (width, wide) = (self.width()?, self.wide()?);
        let destination = self.wide_group(self.encoding.vd())?;
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        let mut sources = Sources::of(&[self.wide_group(vs2)?]);
        if let Second::Vector(register) = second {
            sources.push(self.group(register)?);
        }
        self.check(destination, &sources)?;
        for index in self.body() {
            if self.is_active(index) {
                let a = self.unit.element(vs2, index, wide);
                let b = extend(width, self.second_element(second, index, width), signed);
                self.unit.set_element(vd, index, wide, f(a, b));
            }
        }
        self.done()
    }

    /// `vd[i] = f(vs2[i], second[i])` with vs2 twice as wide as SEW.
    pub(super) fn narrow(&mut self, mut f: impl FnMut(&mut Self, u64, u64) -> u64) -> Checked {
        let second = self.second(Immediate::Unsigned);
        let (width, wide) = (self.width()?, self.wide()?);
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        let mut sources = Sources::of(&[self.wide_group(vs2)?]);
        if let Second::Vector(register) = second {
            sources.push(self.group(register)?);
        }
        self.check(self.destination()?, &sources)?;
        for index in self.body() {
            if self.is_active(index) {
                let a = self.unit.element(vs2, index, wide);
                let b = self.second_element(second, index, width);
                let value = f(self, a, b);
                self.unit.set_element(vd, index, width, value);
            }
        }
        self.done()
    }

    /// VNSRL and VNSRA.
    pub(super) fn narrowing_shift(&mut self, signed: bool) -> Checked {
        let wide = self.wide()?;
        self.narrow(|_, a, b| {
            let amount = b as u32 & (wide.bits() - 1);
            if signed {
                (wide.sign_extend(a) >> amount).cast_unsigned()
            } else {
                a >> amount
            }
        })
    }

    /// The widening instructions of OPMVV and OPMVX by funct6; `None` of another.
    pub(super) fn widening(&mut self) -> Option<Checked> {
        let add = |_: u64, a: u64, b: u64| a.wrapping_add(b);
        let subtract = |_: u64, a: u64, b: u64| a.wrapping_sub(b);
        let multiply = |_: u64, a: u64, b: u64| a.wrapping_mul(b);
        let accumulate = |old: u64, a: u64, b: u64| old.wrapping_add(a.wrapping_mul(b));
        let (signed, unsigned) = ((true, true), (false, false));
        Some(match self.encoding.funct6() {
            0x30 => self.widen(unsigned, false, add),
            0x31 => self.widen(signed, false, add),
            0x32 => self.widen(unsigned, false, subtract),
            0x33 => self.widen(signed, false, subtract),
            0x34 => self.widen_second(false, u64::wrapping_add),
            0x35 => self.widen_second(true, u64::wrapping_add),
            0x36 => self.widen_second(false, u64::wrapping_sub),
            0x37 => self.widen_second(true, u64::wrapping_sub),
            0x38 => self.widen(unsigned, false, multiply),
            // The first operand, vs2, is signed.
            0x3a => self.widen((true, false), false, multiply),
            0x3b => self.widen(signed, false, multiply),
            0x3c => self.widen(unsigned, true, accumulate),
            0x3d => self.widen(signed, true, accumulate),
            // VWMACCUS: the scalar is unsigned, vs2 signed.
            0x3e if matches!(self.second(Immediate::Unsigned), Second::Scalar(_)) => {
                self.widen((true, false), true, accumulate)
            }
            // VWMACCSU: vs1 or the scalar is signed.
            0x3f => self.widen((false, true), true, accumulate),
            _ => return None,
        })
    }
}
