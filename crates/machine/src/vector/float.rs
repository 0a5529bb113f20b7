//! Floating point: "Vector Floating-Point Instructions".

use super::encoding::{Reserved, category};
use super::group::Group;
use super::issue::{Checked, Issue, Output, Second, Sources};
use super::operand::{Operands, Which};
use super::vtype::Width;
use crate::float::{
    self, F16, F32, F64, Flags, Format, Rounding, box_half, box_single, unbox_half, unbox_single,
};

/// Calls a generic function with the format of a width; elements of a byte are reserved.
macro_rules! with_format {
    ($width:expr, $function:ident ( $($argument:expr),* )) => {
        match $width {
            Width::HALF => $function::<F16>($($argument),*),
            Width::WORD => $function::<F32>($($argument),*),
            _ => $function::<F64>($($argument),*),
        }
    };
}
pub(super) use with_format;

/// Operation with two operands, vs2 first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    SubtractReversed,
    Multiply,
    Divide,
    DivideReversed,
    Minimum,
    Maximum,
    SignInject,
    SignInjectNegated,
    SignInjectXor,
}

/// Patterns of a format in integers, as elements hold them.
pub(super) fn binary<F: Format>(
    kind: Binary,
    a: u64,
    b: u64,
    rounding: Rounding,
    flags: &mut Flags,
) -> u64 {
    let (a, b) = (F::pattern(a), F::pattern(b));
    match kind {
        Binary::Add => float::add::<F>(a, b, rounding, flags),
        Binary::Subtract => float::subtract::<F>(a, b, rounding, flags),
        Binary::SubtractReversed => float::subtract::<F>(b, a, rounding, flags),
        Binary::Multiply => float::multiply::<F>(a, b, rounding, flags),
        Binary::Divide => float::divide::<F>(a, b, rounding, flags),
        Binary::DivideReversed => float::divide::<F>(b, a, rounding, flags),
        Binary::Minimum => float::minimum::<F>(a, b, flags),
        Binary::Maximum => float::maximum::<F>(a, b, flags),
        Binary::SignInject => float::sign_inject::<F>(a, b),
        Binary::SignInjectNegated => float::sign_inject_negated::<F>(a, b),
        Binary::SignInjectXor => float::sign_inject_xor::<F>(a, b),
    }
    .into()
}

/// Comparison, vs2 first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

fn compare<F: Format>(relation: Relation, a: u64, b: u64, flags: &mut Flags) -> bool {
    let (a, b) = (F::pattern(a), F::pattern(b));
    match relation {
        Relation::Equal => float::equal::<F>(a, b, flags),
        Relation::NotEqual => !float::equal::<F>(a, b, flags),
        Relation::Less => float::less::<F>(a, b, flags),
        Relation::LessOrEqual => float::less_or_equal::<F>(a, b, flags),
        Relation::Greater => float::less::<F>(b, a, flags),
        Relation::GreaterOrEqual => float::less_or_equal::<F>(b, a, flags),
    }
}

/// Signs of a fused multiply-add: of the product and of the term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signs {
    product: bool,
    term: bool,
}

impl Signs {
    /// The forms in the order of funct6's low two bits: plain, both negated, term negated, product negated.
    const fn of(funct6: u8) -> Self {
        Self {
            product: matches!(funct6 & 3, 1 | 3),
            term: matches!(funct6 & 3, 1 | 2),
        }
    }
}

/// ±(a × b) ± c.
fn fused<F: Format>(
    signs: Signs,
    (a, b, c): (u64, u64, u64),
    rounding: Rounding,
    flags: &mut Flags,
) -> u64 {
    let negated = |value: u64, negate: bool| {
        let value = F::pattern(value);
        if negate {
            float::negate::<F>(value)
        } else {
            value
        }
    };
    let (a, c) = (negated(a, signs.product), negated(c, signs.term));
    float::multiply_add::<F>(a, F::pattern(b), c, rounding, flags).into()
}

/// A value of a format in the format of twice the width.
pub(super) fn widened(width: Width, value: u64, flags: &mut Flags) -> u64 {
    let rounding = Rounding::NearestEven;
    match width {
        Width::HALF => float::reformat::<F16, F32>(value as u16, rounding, flags).into(),
        _ => float::reformat::<F32, F64>(value as u32, rounding, flags),
    }
}

impl Issue<'_> {
    /// The rounding mode and SEW of an instruction that computes in floating point.
    ///
    /// # Errors
    /// [`Reserved`] while FS is Off, with a reserved rounding mode, or with elements of a byte.
    pub(super) fn float_mode(&self) -> Result<(Rounding, Width), Reserved> {
        let width = self.width()?;
        if !self.float_on || width == Width::BYTE {
            return Err(Reserved);
        }
        Ok((self.rounding.ok_or(Reserved)?, width))
    }

    /// `f[rs1]` as an element: the canonical NaN if it is not boxed properly.
    pub(super) const fn float_scalar(&self, width: Width) -> u64 {
        match width {
            Width::HALF => unbox_half(self.float) as u64,
            Width::WORD => unbox_single(self.float) as u64,
            _ => self.float,
        }
    }

    /// The second operand of an instruction of OPFVV or OPFVF.
    const fn float_second(&self, width: Width) -> Second {
        if self.encoding.funct3() == category::FLOAT_SCALAR {
            Second::Scalar(self.float_scalar(width))
        } else {
            Second::Vector(self.encoding.vs1())
        }
    }

    /// `vd[i] = f(...)`, all of SEW.
    fn float_each(&mut self, mut f: impl FnMut(&mut Flags, Operands) -> u64) -> Checked {
        let (_, width) = self.float_mode()?;
        let second = self.float_second(width);
        self.check(self.destination()?, &self.sources(second)?)?;
        let mut flags = self.flags;
        self.compute(second, Which::Active, |operands| f(&mut flags, operands))?;
        self.flags = flags;
        self.done()
    }

    fn float_binary(&mut self, kind: Binary) -> Checked {
        let (rounding, _) = self.float_mode()?;
        self.float_each(|flags, Operands { width, a, b, .. }| {
            with_format!(width, binary(kind, a, b, rounding, flags))
        })
    }

    /// VFMADD and its likes, where vd is a factor, and VFMACC and its likes, where vd is the term.
    fn float_fused(&mut self, factor: bool) -> Checked {
        let (rounding, _) = self.float_mode()?;
        let signs = Signs::of(self.encoding.funct6());
        self.float_each(|flags, of| {
            let operands = if factor {
                (of.old, of.b, of.a)
            } else {
                (of.a, of.b, of.old)
            };
            with_format!(of.width, fused(signs, operands, rounding, flags))
        })
    }

    fn float_compare(&mut self, relation: Relation) -> Checked {
        let (_, width) = self.float_mode()?;
        let second = self.float_second(width);
        let sources = self.sources(second)?;
        self.check(Group::mask(self.encoding.vd()), &sources)?;
        let mut flags = self.flags;
        self.test(second, Which::Active, |Operands { width, a, b, .. }| {
            with_format!(width, compare(relation, a, b, &mut flags))
        })?;
        self.flags = flags;
        self.done()
    }

    /// VFMERGE with vm clear, VFMV.V.F with vm set and vs2 zero.
    fn float_merge(&mut self) -> Checked {
        let (_, width) = self.float_mode()?;
        let scalar = self.float_scalar(width);
        let (vs2, masked) = (self.encoding.vs2(), self.encoding.is_masked());
        let sources = if masked {
            Sources::of(&[self.group(vs2)?])
        } else if vs2 == 0 {
            Sources::default()
        } else {
            return Err(Reserved);
        };
        self.check(self.destination()?, &sources)?;
        self.compute(Second::Scalar(scalar), Which::All, |of| {
            if masked && !of.bit { of.a } else { of.b }
        })?;
        self.done()
    }

    /// `vd[i] = f(vd[i], vs2[i], second[i])` with vd, and with `wide_second` also vs2, of twice SEW.
    fn float_widen(
        &mut self,
        wide_second: bool,
        accumulates: bool,
        f: impl Fn(&mut Flags, u64, u64, u64) -> u64,
    ) -> Checked {
        let (_, width) = self.float_mode()?;
        let wide = self.wide()?;
        let second = self.float_second(width);
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        let destination = self.wide_group(vd)?;
        let mut sources = Sources::of(&[if wide_second {
            self.wide_group(vs2)?
        } else {
            self.group(vs2)?
        }]);
        if let Second::Vector(register) = second {
            sources.push(self.group(register)?);
        }
        if accumulates {
            sources.push(destination);
        }
        self.check(destination, &sources)?;
        for index in self.body() {
            if !self.is_active(index) {
                continue;
            }
            let a = if wide_second {
                self.unit.element(vs2, index, wide)
            } else {
                widened(width, self.unit.element(vs2, index, width), &mut self.flags)
            };
            let b = self.second_element(second, index, width);
            let b = widened(width, b, &mut self.flags);
            let old = self.unit.element(vd, index, wide);
            let value = f(&mut self.flags, old, a, b);
            self.unit.set_element(vd, index, wide, value);
        }
        self.done()
    }

    fn float_widen_binary(&mut self, kind: Binary, wide_second: bool) -> Checked {
        let (rounding, _) = self.float_mode()?;
        let wide = self.wide()?;
        self.float_widen(wide_second, false, |flags, _, a, b| {
            with_format!(wide, binary(kind, a, b, rounding, flags))
        })
    }

    fn float_widen_fused(&mut self) -> Checked {
        let (rounding, _) = self.float_mode()?;
        let (wide, signs) = (self.wide()?, Signs::of(self.encoding.funct6()));
        self.float_widen(false, true, |flags, old, a, b| {
            with_format!(wide, fused(signs, (a, b, old), rounding, flags))
        })
    }

    /// VFREDUSUM, VFREDOSUM, VFREDMIN and VFREDMAX. The unordered sum is made in the order of the elements too.
    fn float_reduce(&mut self, kind: Binary) -> Checked {
        let (rounding, width) = self.float_mode()?;
        let mut flags = self.flags;
        let outcome = self.fold(width, |a, b| {
            with_format!(width, binary(kind, a, b, rounding, &mut flags))
        });
        self.flags = flags;
        outcome
    }

    fn float_reduce_wide(&mut self) -> Checked {
        let (rounding, width) = self.float_mode()?;
        let wide = self.wide()?;
        let mut flags = self.flags;
        let outcome = self.fold(wide, |sum, element| {
            let element = widened(width, element, &mut flags);
            let kind = Binary::Add;
            with_format!(wide, binary(kind, sum, element, rounding, &mut flags))
        });
        self.flags = flags;
        outcome
    }

    /// VFMV.F.S: element 0, boxed.
    fn float_first(&mut self) -> Checked {
        let (_, width) = self.float_mode()?;
        self.unmasked()?;
        if self.encoding.vs1() != 0 {
            return Err(Reserved);
        }
        let value = self.unit.element(self.encoding.vs2(), 0, width);
        self.unit.vstart = 0;
        Ok(Output::Float(match width {
            Width::HALF => box_half(value as u16),
            Width::WORD => box_single(value as u32),
            _ => value,
        }))
    }

    /// Instructions of OPFVV alone.
    fn float_vector(&mut self) -> Option<Checked> {
        Some(match self.encoding.funct6() {
            0x01 | 0x03 => self.float_reduce(Binary::Add),
            0x05 => self.float_reduce(Binary::Minimum),
            0x07 => self.float_reduce(Binary::Maximum),
            0x10 => self.float_first(),
            0x12 => self.convert(),
            0x13 => self.float_unary(),
            0x31 | 0x33 => self.float_reduce_wide(),
            _ => return None,
        })
    }

    /// Instructions of OPFVF alone.
    fn float_scalar_only(&mut self) -> Option<Checked> {
        let (_, width) = match self.float_mode() {
            Ok(mode) => mode,
            Err(reserved) => return Some(Err(reserved)),
        };
        let scalar = self.float_scalar(width);
        Some(match self.encoding.funct6() {
            0x0e => self.slide_up_one(scalar),
            0x0f => self.slide_down_one(scalar),
            0x10 if self.encoding.vs2() == 0 => self.set_first(scalar),
            0x17 => self.float_merge(),
            0x1d => self.float_compare(Relation::Greater),
            0x1f => self.float_compare(Relation::GreaterOrEqual),
            0x21 => self.float_binary(Binary::DivideReversed),
            0x27 => self.float_binary(Binary::SubtractReversed),
            _ => return None,
        })
    }

    /// OPFVV and OPFVF.
    pub(super) fn float(&mut self) -> Checked {
        let own = if self.encoding.funct3() == category::FLOAT_SCALAR {
            self.float_scalar_only()
        } else {
            self.float_vector()
        };
        if let Some(outcome) = own {
            return outcome;
        }
        match self.encoding.funct6() {
            0x00 => self.float_binary(Binary::Add),
            0x02 => self.float_binary(Binary::Subtract),
            0x04 => self.float_binary(Binary::Minimum),
            0x06 => self.float_binary(Binary::Maximum),
            0x08 => self.float_binary(Binary::SignInject),
            0x09 => self.float_binary(Binary::SignInjectNegated),
            0x0a => self.float_binary(Binary::SignInjectXor),
            0x18 => self.float_compare(Relation::Equal),
            0x19 => self.float_compare(Relation::LessOrEqual),
            0x1b => self.float_compare(Relation::Less),
            0x1c => self.float_compare(Relation::NotEqual),
            0x20 => self.float_binary(Binary::Divide),
            0x24 => self.float_binary(Binary::Multiply),
            0x28..=0x2b => self.float_fused(true),
            0x2c..=0x2f => self.float_fused(false),
            0x30 => self.float_widen_binary(Binary::Add, false),
            0x32 => self.float_widen_binary(Binary::Subtract, false),
            0x34 => self.float_widen_binary(Binary::Add, true),
            0x36 => self.float_widen_binary(Binary::Subtract, true),
            0x38 => self.float_widen_binary(Binary::Multiply, false),
            0x3c..=0x3f => self.float_widen_fused(),
            _ => Err(Reserved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_fused_operations_have_their_signs() {
        // 2 x 3 with 10: VFMACC, VFNMACC, VFMSAC, VFNMSAC.
        let operands = (2_f64.to_bits(), 3_f64.to_bits(), 10_f64.to_bits());
        let results = [0x2c, 0x2d, 0x2e, 0x2f].map(|funct6| {
            let mut flags = Flags::default();
            let rounding = Rounding::NearestEven;
            f64::from_bits(fused::<F64>(
                Signs::of(funct6),
                operands,
                rounding,
                &mut flags,
            ))
        });
        assert_eq!(results, [16.0, -16.0, -4.0, 4.0]);
    }
}
