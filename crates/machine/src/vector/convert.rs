//! Conversions and unary operations of floating point: "Vector Floating-Point/Integer Type-Convert Instructions", "Widening"
//! and "Narrowing" ones, "Vector Floating-Point Square-Root Instruction" and what follows it.

use super::encoding::Reserved;
use super::estimate;
use super::float::{widened, with_format};
use super::group::{Group, Overlap};
use super::issue::{Checked, Issue};
use super::vtype::Width;
use crate::float::{self, F16, F32, F64, Flags, Format, Rounding};

/// Element of a format as an integer.
fn to_integer<F: Format>(
    value: u64,
    signed: bool,
    bits: u32,
    rounding: Rounding,
    flags: &mut Flags,
) -> u64 {
    let value = F::pattern(value);
    if signed {
        float::to_signed::<F>(value, bits, rounding, flags).cast_unsigned()
    } else {
        float::to_unsigned::<F>(value, bits, rounding, flags)
    }
}

fn from_integer<F: Format>(
    value: u64,
    signed: bool,
    from: Width,
    rounding: Rounding,
    flags: &mut Flags,
) -> u64 {
    if signed {
        float::from_signed::<F>(from.sign_extend(value), rounding, flags).into()
    } else {
        float::from_unsigned::<F>(from.truncate(value), rounding, flags).into()
    }
}

/// A value in the format of half the width, which is `to`.
fn narrowed(to: Width, value: u64, rounding: Rounding, flags: &mut Flags) -> u64 {
    match to {
        Width::HALF => float::reformat::<F32, F16>(value as u32, rounding, flags).into(),
        _ => float::reformat::<F64, F32>(value, rounding, flags).into(),
    }
}

/// The same rounded to odd: an inexact result has its lowest bit set.
fn narrowed_to_odd(to: Width, value: u64, flags: &mut Flags) -> u64 {
    let mut own = Flags::default();
    let result = narrowed(to, value, Rounding::TowardsZero, &mut own);
    flags.raise(own.0);
    result | u64::from(own.0 & Flags::INEXACT != 0)
}

fn square_root<F: Format>(value: u64, rounding: Rounding, flags: &mut Flags) -> u64 {
    float::square_root::<F>(F::pattern(value), rounding, flags).into()
}

fn classify<F: Format>(value: u64) -> u64 {
    float::classify::<F>(F::pattern(value))
}

/// How wide the two sides of a conversion are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Single,
    Widening,
    Narrowing,
}

impl Issue<'_> {
    /// VFCVT, VFWCVT and VFNCVT by vs1: bits 4:3 the shape, bits 2:0 the kinds of the two sides.
    pub(super) fn convert(&mut self) -> Checked {
        let operation = self.encoding.vs1();
        let shape = match operation >> 3 {
            0 => Shape::Single,
            1 => Shape::Widening,
            2 => Shape::Narrowing,
            _ => return Err(Reserved),
        };
        let kind = operation & 7;
        let signed = kind & 1 != 0;
        let width = self.width()?;
        let dynamic = self.rounding.ok_or(Reserved)?;
        // 6 and 7 truncate.
        let rounding = if kind >= 6 {
            Rounding::TowardsZero
        } else {
            dynamic
        };
        let (from, to) = match shape {
            Shape::Single => (width, width),
            Shape::Widening => (width, self.wide()?),
            Shape::Narrowing => (self.wide()?, width),
        };
        match (kind, shape) {
            (0 | 1 | 6 | 7, _) => {
                self.is_format(from)?;
                self.transform(shape, |flags, a| {
                    with_format!(from, to_integer(a, signed, to.bits(), rounding, flags))
                })
            }
            (2 | 3, _) => {
                self.is_format(to)?;
                self.transform(shape, |flags, a| {
                    with_format!(to, from_integer(a, signed, from, rounding, flags))
                })
            }
            (4, Shape::Widening) => {
                self.is_format(from)?;
                self.transform(shape, |flags, a| widened(from, a, flags))
            }
            (4, Shape::Narrowing) => {
                self.is_format(to)?;
                self.transform(shape, |flags, a| narrowed(to, a, rounding, flags))
            }
            (5, Shape::Narrowing) => {
                self.is_format(to)?;
                self.transform(shape, |flags, a| narrowed_to_odd(to, a, flags))
            }
            _ => Err(Reserved),
        }
    }

    /// Refuses floating point while it is off, and of bytes.
    fn is_format(&self, width: Width) -> Result<(), Reserved> {
        if self.float_on && width != Width::BYTE {
            Ok(())
        } else {
            Err(Reserved)
        }
    }

    /// `vd[i] = f(vs2[i])`.
    fn transform(&mut self, shape: Shape, f: impl Fn(&mut Flags, u64) -> u64) -> Checked {
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        let (destination, source): (Group, Group) = match shape {
            Shape::Single => (self.group(vd)?, self.group(vs2)?),
            Shape::Widening => (self.wide_group(vd)?, self.group(vs2)?),
            Shape::Narrowing => (self.group(vd)?, self.wide_group(vs2)?),
        };
        let width = self.width()?;
        let (from, to) = match shape {
            Shape::Single => (width, width),
            Shape::Widening => (width, self.wide()?),
            Shape::Narrowing => (self.wide()?, width),
        };
        let masked = self.encoding.is_masked();
        self.check_all(destination, &[source], masked, Overlap::General)?;
        for index in self.body() {
            if self.is_active(index) {
                let value = f(&mut self.flags, self.unit.element(vs2, index, from));
                self.unit.set_element(vd, index, to, value);
            }
        }
        self.done()
    }

    /// VFSQRT, VFRSQRT7, VFREC7 and VFCLASS by vs1.
    pub(super) fn float_unary(&mut self) -> Checked {
        let (rounding, width) = self.float_mode()?;
        match self.encoding.vs1() {
            0 => self.transform(Shape::Single, |flags, a| {
                with_format!(width, square_root(a, rounding, flags))
            }),
            4 => self.transform(Shape::Single, |flags, a| {
                use estimate::reciprocal_square_root;
                with_format!(width, reciprocal_square_root(a, flags))
            }),
            5 => self.transform(Shape::Single, |flags, a| {
                use estimate::reciprocal;
                with_format!(width, reciprocal(a, rounding, flags))
            }),
            0x10 => self.transform(Shape::Single, |_, a| with_format!(width, classify(a))),
            _ => Err(Reserved),
        }
    }
}
