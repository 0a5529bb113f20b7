//! The computational instructions of F, D, Zfh and Zfa, by way of [`crate::float`].

use crate::float::{
    self, F16, F32, F64, Flags, Format, Rounding, box_half, box_single, classify, divide, equal,
    less, less_or_equal, maximum, minimum, multiply, multiply_add, negate, reformat, sign_inject,
    sign_inject_negated, sign_inject_xor, square_root, subtract, unbox_half, unbox_single,
};
use crate::hart::Hart;
use crate::instruction::{FloatKind, FloatOperation, Instruction, Precision};

/// The instruction's rounding mode is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReservedRounding;

/// Bits of a register as a pattern of a format, and back.
trait Register: Format {
    fn from_register(register: u64) -> Self::Bits;
    fn to_register(bits: Self::Bits) -> u64;
}

impl Register for F16 {
    fn from_register(register: u64) -> u16 {
        unbox_half(register)
    }

    fn to_register(bits: u16) -> u64 {
        box_half(bits)
    }
}

impl Register for F32 {
    fn from_register(register: u64) -> u32 {
        unbox_single(register)
    }

    fn to_register(bits: u32) -> u64 {
        box_single(bits)
    }
}

impl Register for F64 {
    fn from_register(register: u64) -> u64 {
        register
    }

    fn to_register(bits: u64) -> u64 {
        bits
    }
}

/// Result of an instruction.
enum Output {
    Float(u64),
    Integer(u64),
}

impl Hart {
    /// Executes one instruction.
    ///
    /// # Errors
    /// [`ReservedRounding`]: the instruction is illegal.
    #[inline(never)]
    pub(super) fn float(&mut self, i: Instruction) -> Result<(), ReservedRounding> {
        let operation = FloatOperation::unpack(i.immediate);
        let encoding = if operation.rounding == 7 {
            self.csrs.frm as u8
        } else {
            operation.rounding
        };
        let rounding = match Rounding::from_encoding(encoding) {
            Some(rounding) => rounding,
            None if operation.rounds() => return Err(ReservedRounding),
            None => Rounding::NearestEven,
        };
        let mut flags = Flags(self.csrs.fflags as u8);
        let output = match operation.precision {
            Precision::Double => self.compute::<F64>(operation, i, rounding, &mut flags),
            Precision::Single => self.compute::<F32>(operation, i, rounding, &mut flags),
            Precision::Half => self.compute::<F16>(operation, i, rounding, &mut flags),
        };
        let raised = u64::from(flags.0) != self.csrs.fflags;
        self.csrs.fflags = u64::from(flags.0);
        let virtualized = self.mode().virtualized;
        match output {
            Output::Float(value) => {
                self.f[i.rd as usize] = value;
                self.csrs.set_float_dirty(virtualized);
            }
            Output::Integer(value) => {
                self.x[i.rd as usize] = value;
                if raised {
                    self.csrs.set_float_dirty(virtualized);
                }
            }
        }
        Ok(())
    }

    fn compute<F: Register>(
        &self,
        operation: FloatOperation,
        i: Instruction,
        rounding: Rounding,
        flags: &mut Flags,
    ) -> Output {
        let a = F::from_register(self.f[i.rs1 as usize]);
        let b = F::from_register(self.f[i.rs2 as usize]);
        let c = F::from_register(self.f[operation.rs3 as usize]);
        let integer = self.x[i.rs1 as usize];
        let word = integer as u32;
        let result = match operation.kind {
            FloatKind::Add => float::add::<F>(a, b, rounding, flags),
            FloatKind::Subtract => subtract::<F>(a, b, rounding, flags),
            FloatKind::Multiply => multiply::<F>(a, b, rounding, flags),
            FloatKind::Divide => divide::<F>(a, b, rounding, flags),
            FloatKind::SquareRoot => square_root::<F>(a, rounding, flags),
            FloatKind::MultiplyAdd => multiply_add::<F>(a, b, c, rounding, flags),
            FloatKind::MultiplySubtract => multiply_add::<F>(a, b, negate::<F>(c), rounding, flags),
            FloatKind::NegatedMultiplySubtract => {
                multiply_add::<F>(negate::<F>(a), b, c, rounding, flags)
            }
            FloatKind::NegatedMultiplyAdd => {
                multiply_add::<F>(negate::<F>(a), b, negate::<F>(c), rounding, flags)
            }
            FloatKind::SignInject => sign_inject::<F>(a, b),
            FloatKind::SignInjectNegated => sign_inject_negated::<F>(a, b),
            FloatKind::SignInjectXor => sign_inject_xor::<F>(a, b),
            FloatKind::Minimum => minimum::<F>(a, b, flags),
            FloatKind::Maximum => maximum::<F>(a, b, flags),
            FloatKind::FromInt32 => {
                float::from_signed::<F>(i64::from(word.cast_signed()), rounding, flags)
            }
            FloatKind::FromUnsigned32 => float::from_unsigned::<F>(word.into(), rounding, flags),
            FloatKind::FromInt64 => float::from_signed::<F>(integer.cast_signed(), rounding, flags),
            FloatKind::FromUnsigned64 => float::from_unsigned::<F>(integer, rounding, flags),
            FloatKind::Convert => {
                let register = self.f[i.rs1 as usize];
                match Precision::from_encoding(operation.rs3.into()) {
                    Some(Precision::Half) => {
                        reformat::<F16, F>(unbox_half(register), rounding, flags)
                    }
                    Some(Precision::Single) => {
                        reformat::<F32, F>(unbox_single(register), rounding, flags)
                    }
                    _ => reformat::<F64, F>(register, rounding, flags),
                }
            }
            FloatKind::MoveFromInteger => F::pattern(integer),
            FloatKind::LoadImmediate => float::constant::<F>(i.rs1),
            FloatKind::MinimumOrNan => float::minimum_or_nan::<F>(a, b, flags),
            FloatKind::MaximumOrNan => float::maximum_or_nan::<F>(a, b, flags),
            FloatKind::Round => float::round_to_integer::<F>(a, rounding, false, flags),
            FloatKind::RoundInexact => float::round_to_integer::<F>(a, rounding, true, flags),
            _ => return self.compute_integer::<F>(operation, i, a, b, (rounding, flags)),
        };
        Output::Float(F::to_register(result))
    }

    fn compute_integer<F: Register>(
        &self,
        operation: FloatOperation,
        i: Instruction,
        a: F::Bits,
        b: F::Bits,
        (rounding, flags): (Rounding, &mut Flags),
    ) -> Output {
        let signed = |value: i32| i64::from(value).cast_unsigned();
        Output::Integer(match operation.kind {
            FloatKind::LessOrEqual => less_or_equal::<F>(a, b, flags).into(),
            FloatKind::Less => less::<F>(a, b, flags).into(),
            FloatKind::Equal => equal::<F>(a, b, flags).into(),
            FloatKind::ToInt32 => signed(float::to_i32::<F>(a, rounding, flags)),
            FloatKind::ToUnsigned32 => signed(float::to_u32::<F>(a, rounding, flags).cast_signed()),
            FloatKind::ToInt64 => float::to_i64::<F>(a, rounding, flags).cast_unsigned(),
            FloatKind::ToUnsigned64 => float::to_u64::<F>(a, rounding, flags),
            FloatKind::Classify => classify::<F>(a),
            FloatKind::LessOrEqualQuiet => float::less_or_equal_quiet::<F>(a, b, flags).into(),
            FloatKind::LessQuiet => float::less_quiet::<F>(a, b, flags).into(),
            // Doubles alone: the register is the pattern.
            FloatKind::ToInt32Modular => {
                signed(float::to_i32_modular(self.f[i.rs1 as usize], flags))
            }
            // FMV.X moves the low bits whatever the box, sign-extended.
            _ => {
                let register = self.f[i.rs1 as usize];
                match operation.precision {
                    Precision::Double => register,
                    Precision::Single => signed(register as i32),
                    Precision::Half => signed((register as i16).into()),
                }
            }
        })
    }
}
