//! Taking values apart and putting them together again, rounded.

use super::format::{Flags, Format, Rounding};

/// A value taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A zero.
    Zero,
    /// A finite value that is not zero: `significand * 2^(exponent - 63)`, the significand's
    /// bit 63 set.
    Finite { exponent: i32, significand: u64 },
    /// An infinity.
    Infinity,
    /// A NaN that raises nothing.
    QuietNan,
    /// A NaN that raises NV.
    SignallingNan,
}

/// A value's sign and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unpacked {
    pub sign: bool,
    pub class: Class,
}

impl Unpacked {
    pub(super) const fn is_nan(self) -> bool {
        matches!(self.class, Class::QuietNan | Class::SignallingNan)
    }

    pub(super) const fn is_signalling(self) -> bool {
        matches!(self.class, Class::SignallingNan)
    }
}

/// Takes a bit pattern apart.
#[inline]
pub(super) fn unpack<F: Format>(bits: F::Bits) -> Unpacked {
    let bits: u64 = bits.into();
    let sign = bits & F::SIGN != 0;
    let exponent = (bits >> F::FRACTION_BITS) & F::EXPONENT_MAX;
    let fraction = bits & F::FRACTION_MASK;
    let class = if exponent == F::EXPONENT_MAX {
        if fraction == 0 {
            Class::Infinity
        } else if fraction & F::QUIET != 0 {
            Class::QuietNan
        } else {
            Class::SignallingNan
        }
    } else if exponent != 0 {
        let significand = (fraction | (1 << F::FRACTION_BITS)) << (63 - F::FRACTION_BITS);
        Class::Finite {
            exponent: exponent as i32 - F::BIAS,
            significand,
        }
    } else if fraction != 0 {
        // A subnormal: the exponent is that of the smallest normal, less what normalising takes.
        let zeros = fraction.leading_zeros();
        let above = zeros - (63 - F::FRACTION_BITS);
        Class::Finite {
            exponent: 1 - F::BIAS - above as i32,
            significand: fraction << zeros,
        }
    } else {
        Class::Zero
    };
    Unpacked { sign, class }
}

/// A zero with a sign.
#[inline]
pub(super) fn zero<F: Format>(sign: bool) -> F::Bits {
    F::pattern(sign_bit::<F>(sign))
}

/// An infinity with a sign.
#[inline]
pub(super) fn infinity<F: Format>(sign: bool) -> F::Bits {
    F::pattern(sign_bit::<F>(sign) | F::INFINITY)
}

/// The canonical NaN.
#[inline]
pub(super) fn nan<F: Format>() -> F::Bits {
    F::pattern(F::CANONICAL_NAN)
}

/// The canonical NaN as the result of an invalid operation.
#[inline]
pub(super) fn invalid<F: Format>(flags: &mut Flags) -> F::Bits {
    flags.raise(Flags::INVALID);
    nan::<F>()
}

/// The canonical NaN as the result of an operation with a NaN among its operands.
#[inline]
pub(super) fn propagate<F: Format>(operands: &[Unpacked], flags: &mut Flags) -> F::Bits {
    if operands.iter().any(|operand| operand.is_signalling()) {
        flags.raise(Flags::INVALID);
    }
    nan::<F>()
}

#[inline]
fn sign_bit<F: Format>(sign: bool) -> u64 {
    if sign { F::SIGN } else { 0 }
}

/// `value >> distance` with every bit that falls off the end kept as a one in the lowest bit.
#[inline]
pub(super) fn shift_right_sticky(value: u64, distance: u32) -> u64 {
    if distance == 0 {
        value
    } else if distance < 64 {
        (value >> distance) | u64::from(value << (64 - distance) != 0)
    } else {
        u64::from(value != 0)
    }
}

/// As [`shift_right_sticky`], for the wide intermediate of the fused operations.
#[inline]
pub(super) fn shift_right_sticky_wide(value: u128, distance: u32) -> u128 {
    if distance == 0 {
        value
    } else if distance < 128 {
        (value >> distance) | u128::from(value << (128 - distance) != 0)
    } else {
        u128::from(value != 0)
    }
}

/// Tests whether a magnitude is to be increased by one unit: `lowest` is the lowest kept bit,
/// `remainder` what is cut off, in units where `half` is half a kept unit.
#[inline]
pub(super) fn rounds_up(
    rounding: Rounding,
    sign: bool,
    lowest: bool,
    remainder: u64,
    half: u64,
) -> bool {
    match rounding {
        Rounding::NearestEven => remainder > half || (remainder == half && lowest),
        Rounding::NearestMaxMagnitude => remainder >= half,
        Rounding::TowardsZero => false,
        Rounding::Down => sign && remainder != 0,
        Rounding::Up => !sign && remainder != 0,
    }
}

/// Rounds `significand * 2^(exponent - 63)` to the format and raises OF, UF and NX.
///
/// Bit 63 of the significand is set; its lowest bit may stand for any bits that were cut off.
#[inline]
pub(super) fn round_pack<F: Format>(
    sign: bool,
    exponent: i32,
    significand: u64,
    rounding: Rounding,
    flags: &mut Flags,
) -> F::Bits {
    let cut = 63 - F::FRACTION_BITS;
    let half = 1_u64 << (cut - 1);
    let mask = (1_u64 << cut) - 1;
    let round = |significand: u64| {
        let (kept, remainder) = (significand >> cut, significand & mask);
        (
            kept + u64::from(rounds_up(rounding, sign, kept & 1 != 0, remainder, half)),
            remainder,
        )
    };

    let biased = exponent + F::BIAS;
    if biased <= 0 {
        let (kept, remainder) = round(shift_right_sticky(significand, (1 - biased) as u32));
        if remainder != 0 {
            flags.raise(Flags::INEXACT);
            // Tininess after rounding: what the exponent's range, if it were unbounded, would have
            // rounded to. Only a value just below the smallest normal can escape by a carry.
            let (unbounded, _) = round(significand);
            if biased < 0 || unbounded >> (F::FRACTION_BITS + 1) == 0 {
                flags.raise(Flags::UNDERFLOW);
            }
        }
        // A carry into the hidden bit makes the smallest normal, as the encoding has it.
        return F::pattern(sign_bit::<F>(sign) | kept);
    }

    let (kept, remainder) = round(significand);
    let carried = (kept >> (F::FRACTION_BITS + 1)) as i32;
    if biased + carried > 2 * F::BIAS {
        flags.raise(Flags::OVERFLOW | Flags::INEXACT);
        let to_infinity = match rounding {
            Rounding::NearestEven | Rounding::NearestMaxMagnitude => true,
            Rounding::TowardsZero => false,
            Rounding::Down => sign,
            Rounding::Up => !sign,
        };
        let magnitude = if to_infinity {
            F::INFINITY
        } else {
            F::INFINITY - 1
        };
        return F::pattern(sign_bit::<F>(sign) | magnitude);
    }
    if remainder != 0 {
        flags.raise(Flags::INEXACT);
    }
    // The hidden bit of `kept` adds one to the exponent field, and a carry adds one more.
    let magnitude = (((biased - 1) as u64) << F::FRACTION_BITS) + kept;
    F::pattern(sign_bit::<F>(sign) | magnitude)
}

/// As [`round_pack`] for a wide significand that is not zero and need not be normalised:
/// `significand * 2^(exponent - 127)`.
#[inline]
pub(super) fn normalise_round_pack_wide<F: Format>(
    sign: bool,
    exponent: i32,
    significand: u128,
    rounding: Rounding,
    flags: &mut Flags,
) -> F::Bits {
    let zeros = significand.leading_zeros();
    let normal = significand << zeros;
    let (high, low) = ((normal >> 64) as u64, normal as u64);
    let sticky = high | u64::from(low != 0);
    round_pack::<F>(sign, exponent - zeros as i32, sticky, rounding, flags)
}
