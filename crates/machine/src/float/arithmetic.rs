//! Addition, subtraction, multiplication, division, square root and the fused operations.

use super::format::{Flags, Format, Rounding};
use super::operation::HostOperation;
use super::round::{
    Class, Unpacked, infinity, invalid, normalise_round_pack_wide, propagate, round_pack,
    shift_right_sticky, shift_right_sticky_wide, unpack, zero,
};

/// The host's result, if the shortcut's conditions on mode and flags hold and it is certain.
#[inline]
fn host<F: Format>(
    operation: HostOperation,
    a: F::Bits,
    b: F::Bits,
    rounding: Rounding,
    flags: &Flags,
) -> Option<F::Bits> {
    if rounding == Rounding::NearestEven && flags.0 & Flags::INEXACT != 0 {
        F::host(operation, a, b)
    } else {
        None
    }
}

/// FADD: a + b.
#[inline]
pub fn add<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    host::<F>(HostOperation::Add, a, b, rounding, flags)
        .unwrap_or_else(|| sum::<F>(unpack::<F>(a), unpack::<F>(b), rounding, flags))
}

/// FSUB: a − b.
#[inline]
pub fn subtract<F: Format>(
    a: F::Bits,
    b: F::Bits,
    rounding: Rounding,
    flags: &mut Flags,
) -> F::Bits {
    host::<F>(HostOperation::Subtract, a, b, rounding, flags).unwrap_or_else(|| {
        let b = unpack::<F>(b);
        sum::<F>(
            unpack::<F>(a),
            Unpacked { sign: !b.sign, ..b },
            rounding,
            flags,
        )
    })
}

/// The sign of an exact zero that is the sum of two values of different sign, or of equal
/// magnitude (IEEE 754, 6.3): plus, but minus when rounding down.
fn cancelled(rounding: Rounding) -> bool {
    rounding == Rounding::Down
}

fn sum<F: Format>(a: Unpacked, b: Unpacked, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    match (a.class, b.class) {
        _ if a.is_nan() || b.is_nan() => propagate::<F>(&[a, b], flags),
        (Class::Infinity, Class::Infinity) if a.sign != b.sign => invalid::<F>(flags),
        (Class::Infinity, _) => infinity::<F>(a.sign),
        (_, Class::Infinity) => infinity::<F>(b.sign),
        (Class::Zero, Class::Zero) => zero::<F>(if a.sign == b.sign {
            a.sign
        } else {
            cancelled(rounding)
        }),
        (
            Class::Finite {
                exponent,
                significand,
            },
            Class::Zero,
        ) => round_pack::<F>(a.sign, exponent, significand, rounding, flags),
        (
            Class::Zero,
            Class::Finite {
                exponent,
                significand,
            },
        ) => round_pack::<F>(b.sign, exponent, significand, rounding, flags),
        (
            Class::Finite {
                exponent: a_exponent,
                significand: a_significand,
            },
            Class::Finite {
                exponent: b_exponent,
                significand: b_significand,
            },
        ) => {
            let a_is_larger = (a_exponent, a_significand) >= (b_exponent, b_significand);
            let (sign, exponent, larger, distance, smaller) = if a_is_larger {
                (
                    a.sign,
                    a_exponent,
                    a_significand,
                    a_exponent - b_exponent,
                    b_significand,
                )
            } else {
                (
                    b.sign,
                    b_exponent,
                    b_significand,
                    b_exponent - a_exponent,
                    a_significand,
                )
            };
            // One bit of room for the carry. At least ten zero bits stay below the operands'
            // own, so what the shift folds into the lowest bit never reaches a kept one.
            let (larger, smaller) = (
                larger >> 1,
                shift_right_sticky(smaller >> 1, distance as u32),
            );
            let total = if a.sign == b.sign {
                larger + smaller
            } else {
                larger - smaller
            };
            if total == 0 {
                return zero::<F>(cancelled(rounding));
            }
            let zeros = total.leading_zeros();
            round_pack::<F>(
                sign,
                exponent + 1 - zeros as i32,
                total << zeros,
                rounding,
                flags,
            )
        }
        // NaNs were taken by the first arm.
        _ => invalid::<F>(flags),
    }
}

/// FMUL: a × b.
#[inline]
pub fn multiply<F: Format>(
    a: F::Bits,
    b: F::Bits,
    rounding: Rounding,
    flags: &mut Flags,
) -> F::Bits {
    host::<F>(HostOperation::Multiply, a, b, rounding, flags)
        .unwrap_or_else(|| product::<F>(a, b, rounding, flags))
}

fn product<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    let (a, b) = (unpack::<F>(a), unpack::<F>(b));
    let sign = a.sign != b.sign;
    match (a.class, b.class) {
        _ if a.is_nan() || b.is_nan() => propagate::<F>(&[a, b], flags),
        (Class::Infinity, Class::Zero) | (Class::Zero, Class::Infinity) => invalid::<F>(flags),
        (Class::Infinity, _) | (_, Class::Infinity) => infinity::<F>(sign),
        (
            Class::Finite {
                exponent: a_exponent,
                significand: a_significand,
            },
            Class::Finite {
                exponent: b_exponent,
                significand: b_significand,
            },
        ) => {
            let exact = u128::from(a_significand) * u128::from(b_significand);
            // Each factor is its significand over 2^63, so the product's unit is 2^126.
            let exponent = a_exponent + b_exponent + 1;
            normalise_round_pack_wide::<F>(sign, exponent, exact, rounding, flags)
        }
        _ => zero::<F>(sign),
    }
}

/// FDIV: a ÷ b.
#[inline]
pub fn divide<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    host::<F>(HostOperation::Divide, a, b, rounding, flags)
        .unwrap_or_else(|| quotient::<F>(a, b, rounding, flags))
}

fn quotient<F: Format>(a: F::Bits, b: F::Bits, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    let (a, b) = (unpack::<F>(a), unpack::<F>(b));
    let sign = a.sign != b.sign;
    match (a.class, b.class) {
        _ if a.is_nan() || b.is_nan() => propagate::<F>(&[a, b], flags),
        (Class::Infinity, Class::Infinity) | (Class::Zero, Class::Zero) => invalid::<F>(flags),
        (Class::Infinity, _) => infinity::<F>(sign),
        (Class::Finite { .. }, Class::Zero) => {
            flags.raise(Flags::DIVIDE_BY_ZERO);
            infinity::<F>(sign)
        }
        (
            Class::Finite {
                exponent: a_exponent,
                significand: a_significand,
            },
            Class::Finite {
                exponent: b_exponent,
                significand: b_significand,
            },
        ) => {
            // The quotient of two significands lies in (1/2, 2): scaled by 2^63 it has 63 or 64
            // bits, more than any format needs, and the remainder says whether it is exact.
            let dividend = u128::from(a_significand) << 63;
            let divisor = u128::from(b_significand);
            let scaled = (dividend / divisor) as u64;
            let zeros = scaled.leading_zeros();
            let significand = (scaled << zeros) | u64::from(dividend % divisor != 0);
            let exponent = a_exponent - b_exponent - zeros as i32;
            round_pack::<F>(sign, exponent, significand, rounding, flags)
        }
        _ => zero::<F>(sign),
    }
}

/// FSQRT: √a.
#[inline]
pub fn square_root<F: Format>(a: F::Bits, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    host::<F>(HostOperation::SquareRoot, a, a, rounding, flags)
        .unwrap_or_else(|| root::<F>(a, rounding, flags))
}

fn root<F: Format>(a: F::Bits, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    let a = unpack::<F>(a);
    match a.class {
        Class::QuietNan | Class::SignallingNan => propagate::<F>(&[a], flags),
        Class::Zero => zero::<F>(a.sign),
        _ if a.sign => invalid::<F>(flags),
        Class::Infinity => infinity::<F>(false),
        Class::Finite {
            exponent,
            significand,
        } => {
            // Scale to an even exponent so that the integer root has all of 64 bits.
            let odd = exponent & 1;
            let radicand = u128::from(significand) << (63 + odd);
            let root = radicand.isqrt();
            let significand = root as u64 | u64::from(root * root != radicand);
            round_pack::<F>(false, (exponent - odd) / 2, significand, rounding, flags)
        }
    }
}

/// FMADD: a × b + c, rounded once. The other three of the family are this one with the sign of
/// a (FNMSUB), of c (FMSUB) or of both (FNMADD) turned by [`super::negate`].
pub fn multiply_add<F: Format>(
    a: F::Bits,
    b: F::Bits,
    c: F::Bits,
    rounding: Rounding,
    flags: &mut Flags,
) -> F::Bits {
    if rounding == Rounding::NearestEven
        && flags.0 & Flags::INEXACT != 0
        && let Some(result) = F::host_fused(a, b, c)
    {
        return result;
    }
    let (a, b, c) = (unpack::<F>(a), unpack::<F>(b), unpack::<F>(c));
    let sign = a.sign != b.sign;
    let undefined_product = matches!(
        (a.class, b.class),
        (Class::Infinity, Class::Zero) | (Class::Zero, Class::Infinity)
    );
    if undefined_product {
        // NV even when c is a quiet NaN ("F" extension, single-precision computation).
        return invalid::<F>(flags);
    }
    match (a.class, b.class, c.class) {
        _ if a.is_nan() || b.is_nan() || c.is_nan() => propagate::<F>(&[a, b, c], flags),
        (Class::Infinity, _, _) | (_, Class::Infinity, _) => {
            if c.class == Class::Infinity && c.sign != sign {
                invalid::<F>(flags)
            } else {
                infinity::<F>(sign)
            }
        }
        (_, _, Class::Infinity) => infinity::<F>(c.sign),
        (
            Class::Finite {
                exponent: a_exponent,
                significand: a_significand,
            },
            Class::Finite {
                exponent: b_exponent,
                significand: b_significand,
            },
            _,
        ) => {
            let exact = u128::from(a_significand) * u128::from(b_significand);
            let exponent = a_exponent + b_exponent + 1;
            match c.class {
                Class::Finite {
                    exponent: c_exponent,
                    significand: c_significand,
                } => {
                    let product = Wide::normalised(sign, exponent, exact);
                    let addend =
                        Wide::normalised(c.sign, c_exponent, u128::from(c_significand) << 64);
                    wide_sum::<F>(product, addend, rounding, flags)
                }
                _ => normalise_round_pack_wide::<F>(sign, exponent, exact, rounding, flags),
            }
        }
        (
            _,
            _,
            Class::Finite {
                exponent,
                significand,
            },
        ) => round_pack::<F>(c.sign, exponent, significand, rounding, flags),
        _ => zero::<F>(if sign == c.sign {
            sign
        } else {
            cancelled(rounding)
        }),
    }
}

/// A finite value `significand * 2^(exponent - 127)`, bit 127 of the significand set.
#[derive(Clone, Copy)]
struct Wide {
    sign: bool,
    exponent: i32,
    significand: u128,
}

impl Wide {
    fn normalised(sign: bool, exponent: i32, significand: u128) -> Self {
        let zeros = significand.leading_zeros();
        Self {
            sign,
            exponent: exponent - zeros as i32,
            significand: significand << zeros,
        }
    }
}

/// The sum of an exact product and an addend. The product of two 53-bit significands has 106 bits
/// and leaves 22 zero bits below them: whatever a shift folds away lies far below the kept bits.
fn wide_sum<F: Format>(a: Wide, b: Wide, rounding: Rounding, flags: &mut Flags) -> F::Bits {
    let a_is_larger = (a.exponent, a.significand) >= (b.exponent, b.significand);
    let (larger, smaller) = if a_is_larger { (a, b) } else { (b, a) };
    let distance = (larger.exponent - smaller.exponent) as u32;
    let (high, low) = (
        larger.significand >> 1,
        shift_right_sticky_wide(smaller.significand >> 1, distance),
    );
    let total = if a.sign == b.sign {
        high + low
    } else {
        high - low
    };
    if total == 0 {
        return zero::<F>(cancelled(rounding));
    }
    normalise_round_pack_wide::<F>(larger.sign, larger.exponent + 1, total, rounding, flags)
}
