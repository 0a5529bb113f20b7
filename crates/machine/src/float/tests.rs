//! Against Berkeley SoftFloat in its RISC-V variant: values and flags, in every rounding mode,
//! over special and random operands. Each operation is also done with NX set before, where the
//! host's arithmetic may stand in.

use std::sync::Mutex;

use softfloat_wrapper::RoundingMode;
use softfloat_wrapper::{
    ExceptionFlags, F16 as Reference16, F32 as Reference32, F64 as Reference64, Float,
};

use super::*;

/// The reference keeps its flags in a global.
static REFERENCE: Mutex<()> = Mutex::new(());

const MODES: [(Rounding, RoundingMode); 5] = [
    (Rounding::NearestEven, RoundingMode::TiesToEven),
    (Rounding::TowardsZero, RoundingMode::TowardZero),
    (Rounding::Down, RoundingMode::TowardNegative),
    (Rounding::Up, RoundingMode::TowardPositive),
    (Rounding::NearestMaxMagnitude, RoundingMode::TiesToAway),
];

/// Operand triples for each operation and mode.
const CASES: u32 = 60_000;

/// Xorshift64* (Vigna 2016): any generator will do, as long as it is the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// An operand: a third special or next to special, a third near one in magnitude so that
    /// alignment and cancellation happen, a third anything.
    fn operand<F: Format>(&mut self) -> F::Bits {
        let (kind, random) = (self.next() % 6, self.next());
        let sign = if random >> 63 != 0 { F::SIGN } else { 0 };
        let fraction = random & F::FRACTION_MASK;
        let special = [
            0,
            1,
            F::FRACTION_MASK,
            F::FRACTION_MASK + 1,
            F::INFINITY - 1,
            F::INFINITY,
            F::INFINITY | 1,
            F::CANONICAL_NAN,
            F::CANONICAL_NAN | 1,
            (F::BIAS as u64) << F::FRACTION_BITS,
        ];
        let magnitude = match kind {
            0 => special[self.next() as usize % special.len()],
            1 => {
                let near = special[self.next() as usize % special.len()];
                near.wrapping_add(self.next() % 5).wrapping_sub(2) & (F::SIGN - 1)
            }
            2 | 3 => {
                let spread = self.next() % (2 * u64::from(F::FRACTION_BITS) + 6);
                let exponent = F::BIAS as u64 + spread - u64::from(F::FRACTION_BITS) - 3;
                // Few one bits make exact results and ties likely.
                let sparse = fraction & self.next() & self.next();
                exponent << F::FRACTION_BITS | if kind == 2 { sparse } else { fraction }
            }
            _ => random & (F::SIGN - 1),
        };
        F::pattern(sign | magnitude)
    }

    /// An integer of any length.
    fn integer(&mut self) -> u64 {
        let shift = self.next() % 64;
        self.next() >> shift
            ^ if self.next().is_multiple_of(2) {
                0
            } else {
                u64::MAX
            }
    }
}

/// A reference format with the same bits as one of ours.
trait Reference: Float<Payload = <Self::Ours as Format>::Bits> + Copy {
    type Ours: Format;
}

impl Reference for Reference16 {
    type Ours = F16;
}

impl Reference for Reference32 {
    type Ours = F32;
}

impl Reference for Reference64 {
    type Ours = F64;
}

/// Runs `reference` and gives the flags that it raised.
fn flags_of<T>(reference: impl FnOnce() -> T) -> (T, u8) {
    let mut flags = ExceptionFlags::default();
    flags.set();
    let value = reference();
    flags.get();
    (value, flags.to_bits())
}

/// Checks one operation: `ours` with no flag before and with NX before.
fn check<T: PartialEq + Copy + core::fmt::Debug>(
    what: &str,
    operands: &dyn core::fmt::Debug,
    mode: Rounding,
    expected: (T, u8),
    ours: impl Fn(&mut Flags) -> T,
) {
    for before in [0, Flags::INEXACT] {
        let mut flags = Flags(before);
        let value = ours(&mut flags);
        assert_eq!(
            (value, flags.0),
            (expected.0, expected.1 | before),
            "{what} of {operands:x?} in {mode:?} with flags {before:#x} before"
        );
    }
}

fn arithmetic<R: Reference>(seed: u64) {
    let _guard = REFERENCE.lock();
    let mut random = Random(seed);
    for (mode, reference) in MODES {
        for _ in 0..CASES {
            let a = random.operand::<R::Ours>();
            let b = random.operand::<R::Ours>();
            let c = random.operand::<R::Ours>();
            let (x, y, z) = (R::from_bits(a), R::from_bits(b), R::from_bits(c));
            let run = |what, expected: (R, u8), ours: &dyn Fn(&mut Flags) -> R::Payload| {
                check(
                    what,
                    &(a, b, c),
                    mode,
                    (expected.0.to_bits(), expected.1),
                    ours,
                );
            };
            run("add", flags_of(|| x.add(y, reference)), &|f| {
                add::<R::Ours>(a, b, mode, f)
            });
            run("sub", flags_of(|| x.sub(y, reference)), &|f| {
                subtract::<R::Ours>(a, b, mode, f)
            });
            run("mul", flags_of(|| x.mul(y, reference)), &|f| {
                multiply::<R::Ours>(a, b, mode, f)
            });
            run("div", flags_of(|| x.div(y, reference)), &|f| {
                divide::<R::Ours>(a, b, mode, f)
            });
            run("sqrt", flags_of(|| x.sqrt(reference)), &|f| {
                square_root::<R::Ours>(a, mode, f)
            });
            run("fma", flags_of(|| x.fused_mul_add(y, z, reference)), &|f| {
                multiply_add::<R::Ours>(a, b, c, mode, f)
            });
            // Nearly opposite product and addend: the deep cancellation of a fused operation.
            let d = negate::<R::Ours>(multiply::<R::Ours>(a, b, mode, &mut Flags::default()));
            let z = R::from_bits(d);
            run("fma", flags_of(|| x.fused_mul_add(y, z, reference)), &|f| {
                multiply_add::<R::Ours>(a, b, d, mode, f)
            });
        }
    }
}

#[test]
fn half_arithmetic_is_the_reference_s() {
    arithmetic::<Reference16>(0x5eed_0011);
}

#[test]
fn single_arithmetic_is_the_reference_s() {
    arithmetic::<Reference32>(0x5eed_0001);
}

/// 1 + 2^-12 squared lies half-way between two numbers of single precision but for the addend, which double precision loses.
#[test]
fn sums_rounded_to_half_way_are_exact() {
    let _guard = REFERENCE.lock();
    let factor = 0x3f80_0800_u32;
    // 2^-80 and its negative.
    for addend in [0x1780_0000_u32, 0x9780_0000] {
        for (mode, reference) in MODES {
            let [x, z] = [factor, addend].map(Reference32::from_bits);
            let (value, flags) = flags_of(|| x.fused_mul_add(x, z, reference));
            check("fma", &addend, mode, (value.to_bits(), flags), |flags| {
                multiply_add::<F32>(factor, factor, addend, mode, flags)
            });
        }
    }
}

#[test]
fn double_arithmetic_is_the_reference_s() {
    arithmetic::<Reference64>(0x5eed_0002);
}

fn conversions<R: Reference>(seed: u64) {
    let _guard = REFERENCE.lock();
    let mut random = Random(seed);
    for (mode, reference) in MODES {
        for _ in 0..CASES {
            let a = random.operand::<R::Ours>();
            let x = R::from_bits(a);
            check(
                "to i32",
                &a,
                mode,
                flags_of(|| x.to_i32(reference, true)),
                |f| to_i32::<R::Ours>(a, mode, f),
            );
            check(
                "to u32",
                &a,
                mode,
                flags_of(|| x.to_u32(reference, true)),
                |f| to_u32::<R::Ours>(a, mode, f),
            );
            check(
                "to i64",
                &a,
                mode,
                flags_of(|| x.to_i64(reference, true)),
                |f| to_i64::<R::Ours>(a, mode, f),
            );
            check(
                "to u64",
                &a,
                mode,
                flags_of(|| x.to_u64(reference, true)),
                |f| to_u64::<R::Ours>(a, mode, f),
            );
            let n = random.integer();
            let (value, flags) = flags_of(|| R::from_i64(n as i64, reference));
            check("from i64", &n, mode, (value.to_bits(), flags), |f| {
                from_signed::<R::Ours>(n as i64, mode, f)
            });
            let (value, flags) = flags_of(|| R::from_u64(n, reference));
            check("from u64", &n, mode, (value.to_bits(), flags), |f| {
                from_unsigned::<R::Ours>(n, mode, f)
            });
        }
    }
}

fn integral_values<R: Reference>(seed: u64) {
    let _guard = REFERENCE.lock();
    let mut random = Random(seed);
    for (mode, reference) in MODES {
        for _ in 0..CASES {
            let a = random.operand::<R::Ours>();
            let x = R::from_bits(a);
            let (value, flags) = flags_of(|| x.round_to_integral(reference));
            let expected = value.to_bits();
            check("round", &a, mode, (expected, flags), |f| {
                round_to_integer::<R::Ours>(a, mode, false, f)
            });
            // NX belongs to what is no NaN and not the same as before.
            let changed = !x.is_nan() && expected != a;
            let flags = flags | if changed { Flags::INEXACT } else { 0 };
            check("round inexact", &a, mode, (expected, flags), |f| {
                round_to_integer::<R::Ours>(a, mode, true, f)
            });
        }
    }
}

#[test]
fn integral_values_are_the_reference_s() {
    integral_values::<Reference16>(0x5eed_0017);
    integral_values::<Reference32>(0x5eed_0008);
    integral_values::<Reference64>(0x5eed_0009);
}

#[test]
fn half_conversions_are_the_reference_s() {
    conversions::<Reference16>(0x5eed_0013);
}

#[test]
fn single_conversions_are_the_reference_s() {
    conversions::<Reference32>(0x5eed_0003);
}

#[test]
fn double_conversions_are_the_reference_s() {
    conversions::<Reference64>(0x5eed_0004);
}

#[test]
fn changes_of_format_are_the_reference_s() {
    let _guard = REFERENCE.lock();
    let mut random = Random(0x5eed_0005);
    for (mode, reference) in MODES {
        for _ in 0..CASES {
            let a = random.operand::<F64>();
            let (value, flags) = flags_of(|| Reference64::from_bits(a).to_f32(reference));
            check("narrow", &a, mode, (value.to_bits(), flags), |f| {
                narrow(a, mode, f)
            });
            let b = random.operand::<F32>();
            let (value, flags) = flags_of(|| Reference32::from_bits(b).to_f64(reference));
            check("widen", &b, mode, (value.to_bits(), flags), |f| widen(b, f));
            let (value, flags) = flags_of(|| Reference64::from_bits(a).to_f16(reference));
            check("to half", &a, mode, (value.to_bits(), flags), |f| {
                reformat::<F64, F16>(a, mode, f)
            });
            let (value, flags) = flags_of(|| Reference32::from_bits(b).to_f16(reference));
            check("to half", &b, mode, (value.to_bits(), flags), |f| {
                reformat::<F32, F16>(b, mode, f)
            });
            let c = random.operand::<F16>();
            let (value, flags) = flags_of(|| Reference16::from_bits(c).to_f64(reference));
            check("from half", &c, mode, (value.to_bits(), flags), |f| {
                reformat::<F16, F64>(c, mode, f)
            });
            // Doubles about the limits of single.
            let mut near = widen(b, &mut Flags::default());
            near ^= random.next() & 0x7fff_ffff;
            let (value, flags) = flags_of(|| Reference64::from_bits(near).to_f32(reference));
            check("narrow", &near, mode, (value.to_bits(), flags), |f| {
                narrow(near, mode, f)
            });
        }
    }
}

fn comparisons<R: Reference>(seed: u64) {
    let _guard = REFERENCE.lock();
    let mut random = Random(seed);
    for _ in 0..CASES {
        let a = random.operand::<R::Ours>();
        let b = if random.next().is_multiple_of(4) {
            a
        } else {
            random.operand::<R::Ours>()
        };
        let (x, y) = (R::from_bits(a), R::from_bits(b));
        let mode = Rounding::NearestEven;
        check("eq", &(a, b), mode, flags_of(|| x.eq(y)), |f| {
            equal::<R::Ours>(a, b, f)
        });
        check("lt", &(a, b), mode, flags_of(|| x.lt(y)), |f| {
            less::<R::Ours>(a, b, f)
        });
        check("le", &(a, b), mode, flags_of(|| x.le(y)), |f| {
            less_or_equal::<R::Ours>(a, b, f)
        });

        check("lt quiet", &(a, b), mode, flags_of(|| x.lt_quiet(y)), |f| {
            less_quiet::<R::Ours>(a, b, f)
        });
        check("le quiet", &(a, b), mode, flags_of(|| x.le_quiet(y)), |f| {
            less_or_equal_quiet::<R::Ours>(a, b, f)
        });

        // The reference has no minimum: by the text of the "F" extension from its comparisons.
        let invalid = x.is_signaling_nan() || y.is_signaling_nan();
        let flags = if invalid { Flags::INVALID } else { 0 };
        let canonical = R::Ours::pattern(R::Ours::CANONICAL_NAN);
        let (low, high) = match (x.is_nan(), y.is_nan()) {
            (true, true) => (canonical, canonical),
            (true, false) => (b, b),
            (false, true) => (a, a),
            // Equal magnitudes of different sign are the two zeros, or the same number twice.
            _ if x.lt_quiet(y) || (x.eq(y) && x.is_negative()) => (a, b),
            _ => (b, a),
        };
        check("min", &(a, b), mode, (low, flags), |f| {
            minimum::<R::Ours>(a, b, f)
        });
        check("max", &(a, b), mode, (high, flags), |f| {
            maximum::<R::Ours>(a, b, f)
        });
        let (low, high) = if x.is_nan() || y.is_nan() {
            (canonical, canonical)
        } else {
            (low, high)
        };
        check("minimum", &(a, b), mode, (low, flags), |f| {
            minimum_or_nan::<R::Ours>(a, b, f)
        });
        check("maximum", &(a, b), mode, (high, flags), |f| {
            maximum_or_nan::<R::Ours>(a, b, f)
        });
    }
}

#[test]
fn comparisons_are_the_reference_s() {
    comparisons::<Reference16>(0x5eed_0016);
    comparisons::<Reference32>(0x5eed_0006);
    comparisons::<Reference64>(0x5eed_0007);
}

/// The table of classes of the "F" extension.
#[test]
fn classes_are_the_ten_of_the_table() {
    fn all<F: Format>() {
        let subnormal = F::FRACTION_MASK;
        let normal = F::FRACTION_MASK + 1;
        for (bits, class) in [
            (F::SIGN | F::INFINITY, 0),
            (F::SIGN | (F::INFINITY - 1), 1),
            (F::SIGN | normal, 1),
            (F::SIGN | subnormal, 2),
            (F::SIGN | 1, 2),
            (F::SIGN, 3),
            (0, 4),
            (1, 5),
            (subnormal, 5),
            (normal, 6),
            (F::INFINITY - 1, 6),
            (F::INFINITY, 7),
            (F::INFINITY | 1, 8),
            (F::SIGN | F::INFINITY | 1, 8),
            (F::CANONICAL_NAN, 9),
            (F::SIGN | F::CANONICAL_NAN, 9),
        ] {
            assert_eq!(classify::<F>(F::pattern(bits)), 1 << class, "{bits:#x}");
        }
    }
    all::<F16>();
    all::<F32>();
    all::<F64>();
}

#[test]
fn signs_are_taken_from_the_second_operand() {
    let (one, minus_two) = (0x3f80_0000, 0xc000_0000);
    assert_eq!(sign_inject::<F32>(one, minus_two), 0xbf80_0000);
    assert_eq!(sign_inject_negated::<F32>(one, minus_two), one);
    assert_eq!(sign_inject_xor::<F32>(minus_two, minus_two), 0x4000_0000);
    assert_eq!(negate::<F64>(1 << 63), 0);
}

/// "D" extension, NaN Boxing: anything that is not boxed counts as the canonical NaN.
#[test]
fn only_properly_boxed_singles_come_out_again() {
    assert_eq!(unbox_single(box_single(0x3f80_0000)), 0x3f80_0000);
    assert_eq!(unbox_single(0xffff_fffe_3f80_0000), 0x7fc0_0000);
    assert_eq!(unbox_single(0x3f80_0000), 0x7fc0_0000);
    assert_eq!(unbox_half(box_half(0x3c00)), 0x3c00);
    assert_eq!(unbox_half(0xffff_ffff_0000_3c00), 0x7e00);
}

#[test]
fn reserved_rounding_modes_are_none() {
    for encoding in 0..=255 {
        let mode = Rounding::from_encoding(encoding);
        assert_eq!(
            mode.map(|mode| mode as u8),
            (encoding < 5).then_some(encoding)
        );
    }
}
