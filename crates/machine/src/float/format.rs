//! Formats, rounding modes and flags.

use super::operation::HostOperation;

/// Accrued exception flags, laid out as the `fflags` CSR.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// NX: inexact.
    pub const INEXACT: u8 = 1;
    /// UF: underflow.
    pub const UNDERFLOW: u8 = 2;
    /// OF: overflow.
    pub const OVERFLOW: u8 = 4;
    /// DZ: divide by zero.
    pub const DIVIDE_BY_ZERO: u8 = 8;
    /// NV: invalid operation.
    pub const INVALID: u8 = 16;

    /// Adds `bits` to the flags.
    #[inline]
    pub fn raise(&mut self, bits: u8) {
        self.0 |= bits;
    }
}

/// A rounding mode, numbered as the `frm` CSR and the `rm` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Rounding {
    /// RNE: to nearest, ties to even.
    NearestEven = 0,
    /// RTZ: towards zero.
    TowardsZero = 1,
    /// RDN: down, towards minus infinity.
    Down = 2,
    /// RUP: up, towards plus infinity.
    Up = 3,
    /// RMM: to nearest, ties to the larger magnitude.
    NearestMaxMagnitude = 4,
}

impl Rounding {
    /// The mode of an encoding; `None` for the reserved ones and for DYN (7).
    #[must_use]
    pub const fn from_encoding(encoding: u8) -> Option<Self> {
        Some(match encoding {
            0 => Self::NearestEven,
            1 => Self::TowardsZero,
            2 => Self::Down,
            3 => Self::Up,
            4 => Self::NearestMaxMagnitude,
            _ => return None,
        })
    }
}

/// A binary interchange format of IEEE 754 that RISC-V has registers for.
pub trait Format: Copy + core::fmt::Debug {
    /// The bit pattern as an unsigned integer.
    type Bits: Copy + Eq + core::fmt::Debug + Into<u64>;
    /// Bits of the fraction, without the hidden one.
    const FRACTION_BITS: u32;
    /// Bits of the exponent.
    const EXPONENT_BITS: u32;

    /// The exponent's bias, which is also the largest exponent of a finite value.
    const BIAS: i32 = (1 << (Self::EXPONENT_BITS - 1)) - 1;
    /// The exponent field of infinities and NaNs.
    const EXPONENT_MAX: u64 = (1 << Self::EXPONENT_BITS) - 1;
    /// The fraction field.
    const FRACTION_MASK: u64 = (1 << Self::FRACTION_BITS) - 1;
    /// The sign bit.
    const SIGN: u64 = 1 << (Self::FRACTION_BITS + Self::EXPONENT_BITS);
    /// Positive infinity.
    const INFINITY: u64 = Self::EXPONENT_MAX << Self::FRACTION_BITS;
    /// The bit that tells a quiet NaN from a signalling one.
    const QUIET: u64 = 1 << (Self::FRACTION_BITS - 1);
    /// RISC-V's canonical NaN: positive, quiet, no payload.
    const CANONICAL_NAN: u64 = Self::INFINITY | Self::QUIET;

    /// The low bits of `bits` as a pattern of this format.
    fn pattern(bits: u64) -> Self::Bits;

    /// The host's own operation where it provably gives the same bits and raises no flag but
    /// inexact; `None` where that is not certain. See [`super::shortcut`].
    fn host(operation: HostOperation, a: Self::Bits, b: Self::Bits) -> Option<Self::Bits>;

    /// The same of a × b + c, rounded once.
    #[inline]
    fn host_fused(_: Self::Bits, _: Self::Bits, _: Self::Bits) -> Option<Self::Bits> {
        None
    }
}

/// Half precision, binary16: Zfh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct F16;

/// Single precision, binary32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct F32;

/// Double precision, binary64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct F64;

impl Format for F16 {
    type Bits = u16;
    const FRACTION_BITS: u32 = 10;
    const EXPONENT_BITS: u32 = 5;

    #[inline]
    fn pattern(bits: u64) -> u16 {
        // Truncation is the point, as below.
        bits as u16
    }

    #[inline]
    fn host(_: HostOperation, _: u16, _: u16) -> Option<u16> {
        None
    }
}

impl Format for F32 {
    type Bits = u32;
    const FRACTION_BITS: u32 = 23;
    const EXPONENT_BITS: u32 = 8;

    #[inline]
    fn pattern(bits: u64) -> u32 {
        // Truncation is the point: patterns are computed in the low half.
        bits as u32
    }

    #[inline]
    fn host(operation: HostOperation, a: u32, b: u32) -> Option<u32> {
        super::shortcut::single(operation, f32::from_bits(a), f32::from_bits(b)).map(f32::to_bits)
    }

    #[inline]
    fn host_fused(a: u32, b: u32, c: u32) -> Option<u32> {
        let [a, b, c] = [a, b, c].map(f32::from_bits);
        super::shortcut::single_fused(a, b, c).map(f32::to_bits)
    }
}

impl Format for F64 {
    type Bits = u64;
    const FRACTION_BITS: u32 = 52;
    const EXPONENT_BITS: u32 = 11;

    #[inline]
    fn pattern(bits: u64) -> u64 {
        bits
    }

    #[inline]
    fn host(operation: HostOperation, a: u64, b: u64) -> Option<u64> {
        super::shortcut::double(operation, f64::from_bits(a), f64::from_bits(b)).map(f64::to_bits)
    }
}
