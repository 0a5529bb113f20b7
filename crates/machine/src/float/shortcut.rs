//! The host's floating point, used only where it is provably exact.
//!
//! The caller has checked that the rounding mode is RNE and that NX is already set, so that the
//! only questions left are the value and the flags NV, DZ, OF and UF.
//!
//! *Value.* Rust defines `+ - * /` and `sqrt` on `f32` and `f64` as IEEE 754's operations, rounded
//! to nearest, ties to even, and keeps the host in that mode with subnormals on. The one family of
//! targets that computes with excess precision (x87) is excluded below. IEEE 754 leaves no freedom
//! in the value of a result that is not a NaN, and NaN results are rejected here.
//!
//! *Flags.* The operands are normal, so finite and not zero: no NV from a NaN or from
//! infinity − infinity, no DZ; and the square root's operand is positive: no NV. The result is
//! finite: in RNE an overflow gives an infinity, so no OF. The result's magnitude is *above* the
//! smallest normal number: a result that is tiny after rounding would have rounded, with an
//! unbounded exponent, to less than that number, so no UF. (The smallest normal number itself is
//! left out because a tiny result may round to it.) NX may or may not arise: it is already set.
//!
//! *Fused multiply-add of single precision.* The product of two such numbers has at most 48 bits and an exponent from -252 to
//! 255, so it is exact in double precision. The sum is then rounded twice: to 53 bits, and to 24. That is the sum rounded once unless
//! the 53 bits are half-way between two numbers of 24: rounding is monotonic, and the half-way points have 53 bits themselves,
//! so the first rounding moves no sum over one of them. A sum whose 53 bits are half-way is rejected. The half-way points are
//! where the lowest 29 bits say because the result is normal; the flags are as above.

use super::operation::HostOperation;

/// True if the host's arithmetic is IEEE 754's with no excess precision.
const EXACT_HOST: bool = cfg!(not(target_arch = "x86"));

macro_rules! shortcut {
    ($name:ident, $float:ty) => {
        /// See the module's documentation.
        #[inline]
        pub(super) fn $name(operation: HostOperation, a: $float, b: $float) -> Option<$float> {
            let unary = operation == HostOperation::SquareRoot;
            if !EXACT_HOST || !a.is_normal() || !(unary || b.is_normal()) || (unary && a < 0.0) {
                return None;
            }
            let result = match operation {
                HostOperation::Add => a + b,
                HostOperation::Subtract => a - b,
                HostOperation::Multiply => a * b,
                HostOperation::Divide => a / b,
                HostOperation::SquareRoot => a.sqrt(),
            };
            (result.is_finite() && result.abs() > <$float>::MIN_POSITIVE).then_some(result)
        }
    };
}

shortcut!(single, f32);
shortcut!(double, f64);

/// Bits that a number of double precision has more than one of single precision.
const MORE_BITS: u64 = (1 << (f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS)) - 1;

/// a × b + c. See the module's documentation.
#[inline]
pub(super) fn single_fused(a: f32, b: f32, c: f32) -> Option<f32> {
    if !EXACT_HOST || !a.is_normal() || !b.is_normal() || !c.is_normal() {
        return None;
    }
    let sum = f64::from(a) * f64::from(b) + f64::from(c);
    let result = sum as f32;
    let is_half_way = sum.to_bits() & MORE_BITS == MORE_BITS / 2 + 1;
    (!is_half_way && result.is_finite() && result.abs() > f32::MIN_POSITIVE).then_some(result)
}
