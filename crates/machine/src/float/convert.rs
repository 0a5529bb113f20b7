//! Conversions between integers and floating point, between formats, and NaN boxing.

use super::format::{F32, F64, Flags, Format, Rounding};
use super::round::{
    Class, infinity, propagate, round_pack, rounds_up, shift_right_sticky_wide, unpack, zero,
};

/// FCVT.S.D: narrows a double.
pub fn narrow(a: u64, rounding: Rounding, flags: &mut Flags) -> u32 {
    reformat::<F64, F32>(a, rounding, flags)
}

/// FCVT.D.S: widens a single, always exactly.
pub fn widen(a: u32, flags: &mut Flags) -> u64 {
    reformat::<F32, F64>(a, Rounding::NearestEven, flags)
}

/// FCVT between any two formats.
pub fn reformat<From: Format, To: Format>(
    a: From::Bits,
    rounding: Rounding,
    flags: &mut Flags,
) -> To::Bits {
    let a = unpack::<From>(a);
    match a.class {
        Class::Zero => zero::<To>(a.sign),
        Class::Infinity => infinity::<To>(a.sign),
        Class::Finite {
            exponent,
            significand,
        } => round_pack::<To>(a.sign, exponent, significand, rounding, flags),
        Class::QuietNan | Class::SignallingNan => propagate::<To>(&[a], flags),
    }
}

/// FCVT.fmt.L (and .W, of a sign-extended operand): a signed integer to floating point.
pub fn from_signed<F: Format>(value: i64, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    from_magnitude::<F>(value < 0, value.unsigned_abs(), rounding, flags)
}

/// FCVT.fmt.LU (and .WU, of a zero-extended operand): an unsigned integer to floating point.
pub fn from_unsigned<F: Format>(value: u64, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    from_magnitude::<F>(false, value, rounding, flags)
}

fn from_magnitude<F: Format>(
    sign: bool,
    magnitude: u64,
    rounding: Rounding,
    flags: &mut Flags,
) -> F::Bits {
    if magnitude == 0 {
        return zero::<F>(false);
    }
    let zeros = magnitude.leading_zeros();
    round_pack::<F>(sign, 63 - zeros as i32, magnitude << zeros, rounding, flags)
}

/// FCVT.W.fmt: to a signed 32-bit integer, saturating; NaN gives the largest.
pub fn to_i32<F: Format>(a: F::Bits, rounding: Rounding, flags: &mut Flags) -> i32 {
    to_integer::<F>(
        a,
        rounding,
        flags,
        i128::from(i32::MIN),
        i128::from(i32::MAX),
    ) as i32
}

/// FCVT.WU.fmt: to an unsigned 32-bit integer, saturating; NaN gives the largest.
pub fn to_u32<F: Format>(a: F::Bits, rounding: Rounding, flags: &mut Flags) -> u32 {
    to_integer::<F>(a, rounding, flags, 0, i128::from(u32::MAX)) as u32
}

/// FCVT.L.fmt: to a signed 64-bit integer, saturating; NaN gives the largest.
pub fn to_i64<F: Format>(a: F::Bits, rounding: Rounding, flags: &mut Flags) -> i64 {
    to_integer::<F>(
        a,
        rounding,
        flags,
        i128::from(i64::MIN),
        i128::from(i64::MAX),
    ) as i64
}

/// FCVT.LU.fmt: to an unsigned 64-bit integer, saturating; NaN gives the largest.
pub fn to_u64<F: Format>(a: F::Bits, rounding: Rounding, flags: &mut Flags) -> u64 {
    to_integer::<F>(a, rounding, flags, 0, i128::from(u64::MAX)) as u64
}

/// To a signed integer of so many bits, at most 64, saturating; NaN gives the largest.
pub fn to_signed<F: Format>(a: F::Bits, bits: u32, rounding: Rounding, flags: &mut Flags) -> i64 {
    let end = 1_i128 << (bits - 1);
    to_integer::<F>(a, rounding, flags, -end, end - 1) as i64
}

/// To an unsigned integer of so many bits, at most 64, saturating; NaN gives the largest.
pub fn to_unsigned<F: Format>(a: F::Bits, bits: u32, rounding: Rounding, flags: &mut Flags) -> u64 {
    to_integer::<F>(a, rounding, flags, 0, (1 << bits) - 1) as u64
}

/// Rounds to an integer and brings it into `minimum..=maximum`. What lies outside raises NV and,
/// as the "F" extension has it, not NX as well.
fn to_integer<F: Format>(
    a: F::Bits,
    rounding: Rounding,
    flags: &mut Flags,
    minimum: i128,
    maximum: i128,
) -> i128 {
    let a = unpack::<F>(a);
    let outside = if a.sign && !a.is_nan() {
        minimum
    } else {
        maximum
    };
    let (exponent, significand) = match a.class {
        Class::Zero => return 0,
        Class::Finite {
            exponent,
            significand,
        } if exponent < 64 => (exponent, significand),
        _ => {
            flags.raise(Flags::INVALID);
            return outside;
        }
    };
    // Two bits of fraction are enough to tell less than, exactly and more than one half.
    let scaled = shift_right_sticky_wide(u128::from(significand) << 2, (63 - exponent) as u32);
    let (kept, remainder) = ((scaled >> 2) as u64, (scaled & 3) as u64);
    let up = rounds_up(rounding, a.sign, kept & 1 != 0, remainder, 2);
    let magnitude = i128::from(kept) + i128::from(up);
    let value = if a.sign { -magnitude } else { magnitude };
    if value < minimum || value > maximum {
        flags.raise(Flags::INVALID);
        return outside;
    }
    if remainder != 0 {
        flags.raise(Flags::INEXACT);
    }
    value
}

/// A single in a 64-bit register: NaN-boxed, all ones above it ("D" extension, NaN Boxing of
/// Narrower Values).
#[inline]
#[must_use]
pub const fn box_single(bits: u32) -> u64 {
    bits as u64 | 0xffff_ffff_0000_0000
}

/// A half in a 64-bit register: NaN-boxed.
#[inline]
#[must_use]
pub const fn box_half(bits: u16) -> u64 {
    bits as u64 | 0xffff_ffff_ffff_0000
}

/// The half in a 64-bit register: the canonical NaN if it is not boxed properly.
#[inline]
#[must_use]
pub const fn unbox_half(register: u64) -> u16 {
    if register >> 16 == 0xffff_ffff_ffff {
        register as u16
    } else {
        0x7e00
    }
}

/// The single in a 64-bit register: the canonical NaN if it is not boxed properly.
#[inline]
#[must_use]
pub const fn unbox_single(register: u64) -> u32 {
    if register >> 32 == 0xffff_ffff {
        register as u32
    } else {
        0x7fc0_0000
    }
}
