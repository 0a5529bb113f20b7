//! "Zfa": rounding to integers, conversion modulo 2^32, and constants.

use super::convert::to_i32;
use super::format::{F64, Flags, Format, Rounding};
use super::round::{
    Class, nan, propagate, round_pack, rounds_up, shift_right_sticky_wide, unpack, zero,
};

/// FROUND and, if `inexact`, FROUNDNX: to an integer of the same format. What is integral already,
/// zeros and infinities stay as they are.
pub fn round_to_integer<F: Format>(
    a: F::Bits,
    rounding: Rounding,
    inexact: bool,
    flags: &mut Flags,
) -> F::Bits {
    let value = unpack::<F>(a);
    let (exponent, significand) = match value.class {
        Class::Zero | Class::Infinity => return a,
        Class::QuietNan | Class::SignallingNan => return propagate::<F>(&[value], flags),
        Class::Finite {
            exponent,
            significand,
        } => (exponent, significand),
    };
    if exponent >= F::FRACTION_BITS as i32 {
        return a;
    }
    // Two bits of fraction are enough to tell less than, exactly and more than one half.
    let scaled = shift_right_sticky_wide(u128::from(significand) << 2, (63 - exponent) as u32);
    let (kept, remainder) = ((scaled >> 2) as u64, (scaled & 3) as u64);
    if inexact && remainder != 0 {
        flags.raise(Flags::INEXACT);
    }
    let up = rounds_up(rounding, value.sign, kept & 1 != 0, remainder, 2);
    let magnitude = kept + u64::from(up);
    if magnitude == 0 {
        return zero::<F>(value.sign);
    }
    let zeros = magnitude.leading_zeros();
    round_pack::<F>(
        value.sign,
        63 - zeros as i32,
        magnitude << zeros,
        rounding,
        flags,
    )
}

/// FCVTMOD.W.D: the low 32 bits of the value rounded towards zero. Infinities and NaNs give zero;
/// flags are those of FCVT.W.D.
pub fn to_i32_modular(a: u64, flags: &mut Flags) -> i32 {
    to_i32::<F64>(a, Rounding::TowardsZero, flags);
    let value = unpack::<F64>(a);
    let Class::Finite {
        exponent,
        significand,
    } = value.class
    else {
        return 0;
    };
    let magnitude = if exponent < 63 {
        significand.checked_shr((63 - exponent) as u32)
    } else {
        significand.checked_shl((exponent - 63) as u32)
    };
    let low = magnitude.unwrap_or(0) as u32;
    if value.sign { low.wrapping_neg() } else { low }.cast_signed()
}

/// FLI: the constant of a number from 0 to 31, as the table "Immediate values loaded by the FLI.S
/// instruction" has it.
pub fn constant<F: Format>(number: u8) -> F::Bits {
    // Exponent, and the two bits behind the leading one.
    let (exponent, quarters) = match number {
        0 => return F::pattern(F::SIGN | (F::BIAS as u64) << F::FRACTION_BITS),
        1 => return F::pattern(1 << F::FRACTION_BITS),
        2 => (-16, 0),
        3 => (-15, 0),
        4 => (-8, 0),
        5 => (-7, 0),
        6 => (-4, 0),
        7 => (-3, 0),
        8..=11 => (-2, number - 8),
        12..=15 => (-1, number - 12),
        16..=19 => (0, number - 16),
        20..=22 => (1, number - 20),
        23 => (2, 0),
        24 => (3, 0),
        25 => (4, 0),
        26 => (7, 0),
        27 => (8, 0),
        28 => (15, 0),
        29 => (16, 0),
        30 => return F::pattern(F::INFINITY),
        _ => return nan::<F>(),
    };
    let significand = (4 | u64::from(quarters)) << 61;
    // 2^-16 and 2^-15 are subnormal halves; 2^16 is more than the largest and becomes infinity.
    round_pack::<F>(
        false,
        exponent,
        significand,
        Rounding::NearestEven,
        &mut Flags::default(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{F16, F32};
    use super::*;

    /// The values of the table in the host's arithmetic.
    #[test]
    fn constants_are_those_of_the_table() {
        let table = [
            -1.0,
            f64::MIN_POSITIVE,
            2f64.powi(-16),
            2f64.powi(-15),
            2f64.powi(-8),
            2f64.powi(-7),
            0.0625,
            0.125,
            0.25,
            0.3125,
            0.375,
            0.4375,
            0.5,
            0.625,
            0.75,
            0.875,
            1.0,
            1.25,
            1.5,
            1.75,
            2.0,
            2.5,
            3.0,
            4.0,
            8.0,
            16.0,
            128.0,
            256.0,
            32768.0,
            65536.0,
            f64::INFINITY,
        ];
        for (number, value) in (0..).zip(table) {
            assert_eq!(constant::<F64>(number), value.to_bits(), "{number}");
            let single = if number == 1 {
                f32::MIN_POSITIVE
            } else {
                value as f32
            };
            assert_eq!(constant::<F32>(number), single.to_bits(), "{number}");
        }
        assert_eq!(constant::<F64>(31), F64::CANONICAL_NAN);
        let halves = [1, 2, 3, 16, 28, 29, 30, 31].map(constant::<F16>);
        assert_eq!(
            halves,
            [
                0x0400, 0x0100, 0x0200, 0x3c00, 0x7800, 0x7c00, 0x7c00, 0x7e00
            ]
        );
    }

    #[test]
    fn a_modular_conversion_keeps_the_low_bits() {
        let convert = |value: f64| {
            let mut flags = Flags::default();
            (to_i32_modular(value.to_bits(), &mut flags), flags.0)
        };
        assert_eq!(convert(-1.5), (-1, Flags::INEXACT));
        assert_eq!(convert(2_147_483_648.0), (i32::MIN, Flags::INVALID));
        assert_eq!(convert(-4_294_967_297.0), (-1, Flags::INVALID));
        assert_eq!(convert(2f64.powi(53) + 2.0), (2, Flags::INVALID));
        assert_eq!(convert(2f64.powi(84) + 2f64.powi(32)), (0, Flags::INVALID));
        assert_eq!(convert(f64::NAN), (0, Flags::INVALID));
        assert_eq!(convert(f64::INFINITY), (0, Flags::INVALID));
        assert_eq!(convert(0.0), (0, 0));
    }
}
