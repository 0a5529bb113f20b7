//! Tests of the instructions by the standards' examples.

use super::*;
use crate::base::VectorLength;
use crate::float::Flags;
use crate::vector::Vtype;
use crate::vector::encoding::Encoding;
use crate::vector::issue::Output;
use crate::vector::unit::VectorUnit;

#[test]
fn products_have_an_identity() {
    // One is the first bit of the first byte.
    let one = [0x80, 0, 0, 0];
    let value = [0x0123_4567, 0x89ab_cdef, 0xdead_beef, 0x0bad_f00d];
    assert_eq!(multiply(value, one), value);
    assert_eq!(multiply(one, value), value);
}

/// FIPS 180-4, SHA-256 of "abc", by the instructions' functions alone.
#[test]
fn sha_256_of_abc_follows_fips() {
    const H: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    // The constants are the fractional bits of the cube roots of primes.
    let primes = (2_u64..)
        .filter(|n| (2..*n).all(|d| !n.is_multiple_of(d)))
        .take(64);
    let constants: Vec<u32> = primes
        .map(|prime| {
            let target = u128::from(prime) << 96;
            let (mut low, mut high) = (0_u128, 1 << 40);
            while high - low > 1 {
                let middle = low.midpoint(high);
                if middle * middle * middle <= target {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            low as u32
        })
        .collect();
    let mut words: Vec<u32> = vec![0x6162_6380];
    words.resize(15, 0);
    words.push(24);
    while words.len() < 64 {
        let n = words.len() - 16;
        let at = |index: usize| words[n + index];
        let more = sha::step(
            sha::Step::Schedule,
            [at(0), at(1), at(2), at(3)],
            [at(4), at(9), at(10), at(11)],
            [at(12), at(13), at(14), at(15)],
        );
        words.extend(more);
    }
    let [a, b, c, d, e, f, g, h] = H;
    let (mut state, mut old) = ([f, e, b, a], [h, g, d, c]);
    for quarter in 0..16 {
        let added = [0, 1, 2, 3].map(|index| {
            let n = 4 * quarter + index;
            words[n].wrapping_add(constants[n])
        });
        let middle = sha::step(sha::Step::CompressLower, old, state, added);
        let after = sha::step(sha::Step::CompressUpper, state, middle, added);
        (old, state) = (middle, after);
    }
    let [f2, e2, b2, a2] = state;
    let digest = [a2.wrapping_add(a), b2.wrapping_add(b)];
    assert_eq!(digest, [0xba78_16bf, 0x8f01_cfea]);
    assert_eq!(e2.wrapping_add(e), 0xb003_61a3);
    assert_eq!(f2.wrapping_add(f), 0x9617_7a9c);
}

/// Issues VSM3ME or VSM3C by funct6 in a unit of 256 bits.
fn sm3(unit: &mut VectorUnit, funct6: u32, vd: u32, vs2: u32, vs1: u32) -> Checked {
    let encoding = funct6 << 26 | 1 << 25 | vs2 << 20 | vs1 << 15 | 2 << 12 | vd << 7 | 0x77;
    let mut issue = Issue {
        unit,
        encoding: Encoding(encoding),
        integer: 0,
        second: 0,
        float: 0,
        rounding: None,
        float_on: false,
        flags: Flags::default(),
        is_checked: false,
    };
    issue.crypto()
}

/// GB/T 32905-2016, example 1: SM3 of "abc". New words of the message replace the oldest, as programs have it.
#[test]
fn sm3_of_abc_follows_its_standard() {
    const EXPAND: u32 = 0x20;
    const COMPRESS: u32 = 0x2b;
    const STATE: WideWords = [
        0x7380_166f,
        0x4914_b2b9,
        0x1724_42d7,
        0xda8a_0600,
        0xa96f_30bc,
        0x1631_38aa,
        0xe38d_ee4d,
        0xb0fb_0e4e,
    ];
    let mut unit = VectorUnit::new(VectorLength::new(256).expect("a length"));
    let vtype = Vtype::from_bits(2 << 3, unit.length());
    unit.configure(vtype, u64::MAX);
    let set = |unit: &mut VectorUnit, register: u8, words: WideWords| {
        for (index, word) in words.into_iter().enumerate() {
            let word = word.swap_bytes().into();
            unit.set_element(register, index, Width::WORD, word);
        }
    };
    let get = |unit: &VectorUnit, register: u8| -> WideWords {
        std::array::from_fn(|index| {
            (unit.element(register, index, Width::WORD) as u32).swap_bytes()
        })
    };
    let mut message = vec![0x6162_6380, 0, 0, 0, 0, 0, 0, 0];
    message.extend([0, 0, 0, 0, 0, 0, 0, 24]);
    let (mut old, mut new) = (6, 8);
    set(&mut unit, 6, message[..8].try_into().unwrap());
    set(&mut unit, 8, message[8..].try_into().unwrap());
    while message.len() < 72 {
        assert_eq!(sm3(&mut unit, EXPAND, old, new, old), Ok(Output::Vector));
        message.extend(get(&unit, old as u8));
        (old, new) = (new, old);
    }
    set(&mut unit, 0, STATE);
    for round in 0..32 {
        let first = 2 * round as usize;
        set(&mut unit, 4, message[first..first + 8].try_into().unwrap());
        assert_eq!(sm3(&mut unit, COMPRESS, 0, 4, round), Ok(Output::Vector));
    }
    let mut digest = get(&unit, 0);
    for (word, before) in digest.iter_mut().zip(STATE) {
        *word ^= before;
    }
    assert_eq!(
        digest,
        [
            0x66c7_f0f4,
            0x62ee_edd9,
            0xd1f2_d46b,
            0xdc10_e4e2,
            0x4167_c487,
            0x5cf2_f7a2,
            0x297d_a02b,
            0x8f4b_a8e0
        ]
    );
    assert_eq!(sm3(&mut unit, EXPAND, 8, 8, 6), Err(Reserved));
    assert_eq!(sm3(&mut unit, COMPRESS, 8, 8, 0), Err(Reserved));
}
