//! Comparisons, minimum and maximum, classification and signs.

use super::format::{Flags, Format};
use super::round::{Class, nan, unpack};

/// FEQ: a = b, quiet. A signalling NaN raises NV; a NaN is equal to nothing.
pub fn equal<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> bool {
    let (left, right) = (unpack::<F>(a), unpack::<F>(b));
    if left.is_nan() || right.is_nan() {
        if left.is_signalling() || right.is_signalling() {
            flags.raise(Flags::INVALID);
        }
        return false;
    }
    a == b || (left.class == Class::Zero && right.class == Class::Zero)
}

/// FLT: a < b, signalling. Any NaN raises NV and gives false.
pub fn less<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> bool {
    ordered::<F>(a, b, flags) && key::<F>(a) < key::<F>(b)
}

/// FLE: a ≤ b, signalling. Any NaN raises NV and gives false.
pub fn less_or_equal<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> bool {
    ordered::<F>(a, b, flags) && key::<F>(a) <= key::<F>(b)
}

/// FLTQ: a < b, quiet. A signalling NaN raises NV; any NaN gives false.
pub fn less_quiet<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> bool {
    ordered_quiet::<F>(a, b, flags) && key::<F>(a) < key::<F>(b)
}

/// FLEQ: a ≤ b, quiet. A signalling NaN raises NV; any NaN gives false.
pub fn less_or_equal_quiet<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> bool {
    ordered_quiet::<F>(a, b, flags) && key::<F>(a) <= key::<F>(b)
}

fn ordered_quiet<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> bool {
    let (left, right) = (unpack::<F>(a), unpack::<F>(b));
    if left.is_signalling() || right.is_signalling() {
        flags.raise(Flags::INVALID);
    }
    !left.is_nan() && !right.is_nan()
}

fn ordered<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> bool {
    let ordered = !unpack::<F>(a).is_nan() && !unpack::<F>(b).is_nan();
    if !ordered {
        flags.raise(Flags::INVALID);
    }
    ordered
}

/// A signed integer that orders as the value does; both zeros give zero.
fn key<F: Format>(bits: F::Bits) -> i64 {
    let bits: u64 = bits.into();
    let magnitude = (bits & (F::SIGN - 1)) as i64;
    if bits & F::SIGN != 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// FMIN: IEEE 754-2019's minimumNumber. −0 is less than +0; of a number and a NaN, the number; of
/// two NaNs, the canonical one. A signalling NaN raises NV.
pub fn minimum<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> F::Bits {
    number::<F>(a, b, flags).unwrap_or_else(|| {
        let a_first = (key::<F>(a), !negative::<F>(a)) <= (key::<F>(b), !negative::<F>(b));
        if a_first { a } else { b }
    })
}

/// FMAX: IEEE 754-2019's maximumNumber, as [`minimum`] mirrored.
pub fn maximum<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> F::Bits {
    number::<F>(a, b, flags).unwrap_or_else(|| {
        let a_last = (key::<F>(a), !negative::<F>(a)) >= (key::<F>(b), !negative::<F>(b));
        if a_last { a } else { b }
    })
}

/// FMINM: IEEE 754-2019's minimum. As [`minimum`], but any NaN makes the canonical one.
pub fn minimum_or_nan<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> F::Bits {
    let number = minimum::<F>(a, b, flags);
    if unpack::<F>(a).is_nan() || unpack::<F>(b).is_nan() {
        nan::<F>()
    } else {
        number
    }
}

/// FMAXM: IEEE 754-2019's maximum. As [`maximum`], but any NaN makes the canonical one.
pub fn maximum_or_nan<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> F::Bits {
    let number = maximum::<F>(a, b, flags);
    if unpack::<F>(a).is_nan() || unpack::<F>(b).is_nan() {
        nan::<F>()
    } else {
        number
    }
}

/// The result of a minimum or maximum that a NaN among the operands decides.
fn number<F: Format>(a: F::Bits, b: F::Bits, flags: &mut Flags) -> Option<F::Bits> {
    let (left, right) = (unpack::<F>(a), unpack::<F>(b));
    if left.is_signalling() || right.is_signalling() {
        flags.raise(Flags::INVALID);
    }
    match (left.is_nan(), right.is_nan()) {
        (true, true) => Some(nan::<F>()),
        (true, false) => Some(b),
        (false, true) => Some(a),
        (false, false) => None,
    }
}

fn negative<F: Format>(bits: F::Bits) -> bool {
    let bits: u64 = bits.into();
    bits & F::SIGN != 0
}

/// FCLASS: one bit of ten, as the "F" extension's table of classes has them.
pub fn classify<F: Format>(bits: F::Bits) -> u64 {
    let value = unpack::<F>(bits);
    let bit = match (value.class, value.sign) {
        (Class::Infinity, true) => 0,
        (Class::Finite { exponent, .. }, true) if exponent > -F::BIAS => 1,
        (Class::Finite { .. }, true) => 2,
        (Class::Zero, true) => 3,
        (Class::Zero, false) => 4,
        (Class::Finite { exponent, .. }, false) if exponent <= -F::BIAS => 5,
        (Class::Finite { .. }, false) => 6,
        (Class::Infinity, false) => 7,
        (Class::SignallingNan, _) => 8,
        (Class::QuietNan, _) => 9,
    };
    1 << bit
}

/// FSGNJ: a with the sign of b.
pub fn sign_inject<F: Format>(a: F::Bits, b: F::Bits) -> F::Bits {
    let (a, b): (u64, u64) = (a.into(), b.into());
    F::pattern((a & !F::SIGN) | (b & F::SIGN))
}

/// FSGNJN: a with the opposite of the sign of b.
pub fn sign_inject_negated<F: Format>(a: F::Bits, b: F::Bits) -> F::Bits {
    let (a, b): (u64, u64) = (a.into(), b.into());
    F::pattern((a & !F::SIGN) | (!b & F::SIGN))
}

/// FSGNJX: a with its sign turned if b is negative.
pub fn sign_inject_xor<F: Format>(a: F::Bits, b: F::Bits) -> F::Bits {
    let (a, b): (u64, u64) = (a.into(), b.into());
    F::pattern(a ^ (b & F::SIGN))
}

/// a with its sign turned, NaN or not.
#[inline]
pub fn negate<F: Format>(a: F::Bits) -> F::Bits {
    let a: u64 = a.into();
    F::pattern(a ^ F::SIGN)
}
