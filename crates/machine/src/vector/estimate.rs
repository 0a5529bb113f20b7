//! Estimates to seven bits: "Vector Floating-Point Reciprocal Square-Root Estimate Instruction" and "Vector Floating-Point
//! Reciprocal Estimate Instruction".
//!
//! Both tables of the specification hold the function at the middle of an interval, rounded to the nearest.

use crate::float::{self, Flags, Format, Rounding};

const ENTRIES: usize = 128;

/// Seven bits behind the leading one of 1/x, x in [1, 2), by x's seven bits behind the leading one.
const RECIPROCAL: [u8; ENTRIES] = {
    let mut table = [0; ENTRIES];
    let mut index = 0;
    while index < ENTRIES {
        // x is middle / 256; 2/x - 1 is (512 - middle) / middle.
        let middle = 257 + 2 * index;
        table[index] = ((256 * (512 - middle) + middle) / (2 * middle)) as u8;
        index += 1;
    }
    table
};

/// The same of 1/sqrt(x), x in [2, 4) by six bits, then x in [1, 2).
const ROOT: [u8; ENTRIES] = {
    let mut table = [0; ENTRIES];
    let mut index = 0;
    while index < ENTRIES {
        // x is middle / 128, or twice that. The greatest n with n - 1/2 <= 256 / sqrt(x).
        let middle = (129 + 2 * (index % 64)) * if index < 64 { 2 } else { 1 };
        let mut value = 128;
        while (2 * (value + 1) - 1) * (2 * (value + 1) - 1) * middle <= 512 * 512 * 128 {
            value += 1;
        }
        table[index] = (value - 128) as u8;
        index += 1;
    }
    table
};

const fn entry(table: &[u8; ENTRIES], index: u64) -> u64 {
    table[index as usize % ENTRIES] as u64
}

/// Exponent field of a finite number that is not zero, less than 1 of a subnormal one, and its fraction without the leading
/// one.
fn normalised<F: Format>(bits: u64) -> (i64, u64) {
    let exponent = (bits >> F::FRACTION_BITS & F::EXPONENT_MAX) as i64;
    let fraction = bits & F::FRACTION_MASK;
    if exponent != 0 {
        return (exponent, fraction);
    }
    let zeros = fraction.leading_zeros() - (64 - F::FRACTION_BITS);
    (
        -i64::from(zeros),
        fraction << (zeros + 1) & F::FRACTION_MASK,
    )
}

/// Class bits as FCLASS has them.
mod class {
    pub const NEGATIVE: u64 = 0b111;
    pub const NEGATIVE_INFINITY: u64 = 1;
    pub const NEGATIVE_ZERO: u64 = 1 << 3;
    pub const POSITIVE_ZERO: u64 = 1 << 4;
    pub const POSITIVE_INFINITY: u64 = 1 << 7;
    pub const SIGNALLING_NAN: u64 = 1 << 8;
    pub const QUIET_NAN: u64 = 1 << 9;
}

/// VFRSQRT7.
pub(super) fn reciprocal_square_root<F: Format>(bits: u64, flags: &mut Flags) -> u64 {
    match float::classify::<F>(F::pattern(bits)) {
        class::NEGATIVE_ZERO | class::POSITIVE_ZERO => {
            flags.raise(Flags::DIVIDE_BY_ZERO);
            return bits & F::SIGN | F::INFINITY;
        }
        class::POSITIVE_INFINITY => return 0,
        class::QUIET_NAN => return F::CANONICAL_NAN,
        of if of & (class::NEGATIVE | class::SIGNALLING_NAN) != 0 => {
            flags.raise(Flags::INVALID);
            return F::CANONICAL_NAN;
        }
        _ => {}
    }
    let (exponent, fraction) = normalised::<F>(bits);
    let six = fraction >> (F::FRACTION_BITS - 6);
    let significand = entry(&ROOT, ((exponent & 1) as u64) << 6 | six);
    let result = (3 * i64::from(F::BIAS) - 1 - exponent).div_euclid(2) as u64;
    result << F::FRACTION_BITS | significand << (F::FRACTION_BITS - 7)
}

/// VFREC7.
pub(super) fn reciprocal<F: Format>(bits: u64, rounding: Rounding, flags: &mut Flags) -> u64 {
    let sign = bits & F::SIGN;
    match float::classify::<F>(F::pattern(bits)) {
        class::NEGATIVE_INFINITY | class::POSITIVE_INFINITY => return sign,
        class::NEGATIVE_ZERO | class::POSITIVE_ZERO => {
            flags.raise(Flags::DIVIDE_BY_ZERO);
            return sign | F::INFINITY;
        }
        class::SIGNALLING_NAN => {
            flags.raise(Flags::INVALID);
            return F::CANONICAL_NAN;
        }
        class::QUIET_NAN => return F::CANONICAL_NAN,
        _ => {}
    }
    let (exponent, fraction) = normalised::<F>(bits);
    if exponent < -1 {
        // The reciprocal is beyond the largest number.
        flags.raise(Flags::OVERFLOW | Flags::INEXACT);
        let to_largest = match rounding {
            Rounding::TowardsZero => true,
            Rounding::Down => sign == 0,
            Rounding::Up => sign != 0,
            Rounding::NearestEven | Rounding::NearestMaxMagnitude => false,
        };
        return sign | (F::INFINITY - u64::from(to_largest));
    }
    let significand = entry(&RECIPROCAL, fraction >> (F::FRACTION_BITS - 7));
    let significand = significand << (F::FRACTION_BITS - 7);
    let result = 2 * i64::from(F::BIAS) - 1 - exponent;
    if result > 0 {
        return sign | (result as u64) << F::FRACTION_BITS | significand;
    }
    // A subnormal result: the leading one comes into the fraction.
    let significand = (1 << F::FRACTION_BITS | significand) >> (1 - result);
    sign | significand
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{F32, F64};

    #[test]
    fn tables_hold_the_specification_s_entries() {
        assert_eq!(RECIPROCAL[..4], [127, 125, 123, 121]);
        assert_eq!(RECIPROCAL[124..], [2, 1, 1, 0]);
        assert_eq!(ROOT[..4], [52, 51, 50, 48]);
        assert_eq!(ROOT[62..68], [1, 0, 127, 125, 123, 121]);
        assert_eq!(ROOT[127], 53);
    }

    #[test]
    fn estimates_are_right_to_seven_bits() {
        let mut flags = Flags::default();
        for value in [1.0_f64, 1.5, 2.0, 3.0, 1e10, 1e-10, 7.7, 1e-310] {
            let root = f64::from_bits(reciprocal_square_root::<F64>(value.to_bits(), &mut flags));
            assert!((root * value.sqrt() - 1.0).abs() < 1.0 / 128.0, "{value}");
            if value > 1e-300 {
                let rounding = Rounding::NearestEven;
                let one = f64::from_bits(reciprocal::<F64>(value.to_bits(), rounding, &mut flags));
                assert!((one * value - 1.0).abs() < 1.0 / 128.0, "{value}");
            }
        }
        assert_eq!(flags.0, 0);
    }

    #[test]
    fn reciprocals_reach_subnormals_and_overflow() {
        let mut flags = Flags::default();
        let largest = f32::MAX.to_bits().into();
        let small = reciprocal::<F32>(largest, Rounding::NearestEven, &mut flags) as u32;
        assert!(f32::from_bits(small) > 0.0 && !f32::from_bits(small).is_normal());
        assert_eq!(flags.0, 0);
        let least = 1;
        assert_eq!(
            reciprocal::<F32>(least, Rounding::TowardsZero, &mut flags),
            F32::INFINITY - 1
        );
        assert_eq!(flags.0, Flags::OVERFLOW | Flags::INEXACT);
    }
}
