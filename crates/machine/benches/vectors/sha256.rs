//! SHA-256's compression function over 64 KiB, FIPS 180-4: with Zbb, and with Zvknhb and Zvbb.

use super::assembler::*;

/// Initial hash value.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];
/// Where the first temporary registers are, and the constants' address.
const T0: Register = 25;
const T1: Register = 26;
const T2: Register = 27;
const TABLE: Register = 28;

/// Constants of the rounds: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
fn constants() -> Vec<u32> {
    let is_prime = |n: &u64| (2..*n).all(|factor| !n.is_multiple_of(factor));
    let cube_root = |prime: u64| {
        // The root times 2^32, bit by bit.
        let wanted = u128::from(prime) << 96;
        (0..36).rev().fold(0_u128, |root, bit| {
            let next = root | 1 << bit;
            // Below 2^36, so that its cube is below 2^108.
            if next * next * next <= wanted {
                next
            } else {
                root
            }
        })
    };
    (2..)
        .filter(is_prime)
        .take(64)
        .map(|prime| cube_root(prime) as u32)
        .collect()
}

/// The constants and the initial hash value in the program's text, and a jump over them; leaves their address in [`TABLE`].
fn tables(hash: [u32; 8]) -> Vec<u32> {
    let data: Vec<u32> = constants().into_iter().chain(hash).collect();
    let behind = 4 * (data.len() as i32 + 1);
    let mut words = vec![auipc(TABLE, 0), addi(TABLE, TABLE, 12), jal(0, behind)];
    words.extend(data);
    words
}

const fn rotate(rd: Register, rs1: Register, amount: i32) -> u32 {
    // RORIW.
    i_type(0x600 | amount, rs1, 5, rd, 0x1b)
}

const fn shift_word(rd: Register, rs1: Register, amount: i32) -> u32 {
    // SRLIW.
    i_type(amount, rs1, 5, rd, 0x1b)
}

/// t0 = the word rotated by two amounts and by, or shifted by, a third.
fn mix(word: Register, [a, b, c]: [i32; 3], shifts: bool) -> [u32; 5] {
    let last = if shifts { shift_word } else { rotate };
    [
        rotate(T0, word, a),
        rotate(T1, word, b),
        xor(T0, T0, T1),
        last(T1, word, c),
        xor(T0, T0, T1),
    ]
}

/// One round and, but for the last 16, the word of 16 rounds later.
fn round(number: usize, words: &mut Vec<u32>) {
    let register = |place: usize| STATE[(place + 64 - number) % 8];
    let word = |index: usize| MESSAGE[index % 16];
    let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(register);
    words.extend(mix(e, [6, 11, 25], false));
    words.extend([xor(T1, f, g), and(T1, T1, e), xor(T1, T1, g)]);
    words.extend([add(h, h, T0), add(h, h, T1)]);
    words.extend([lw(T2, TABLE, 4 * number as i32), add(h, h, T2)]);
    words.extend([add(h, h, word(number)), add(d, d, h)]);
    words.extend(mix(a, [2, 13, 22], false));
    words.extend([xor(T1, a, b), and(T1, T1, c), and(T2, a, b)]);
    words.extend([xor(T1, T1, T2), add(h, h, T0), add(h, h, T1)]);
    if number < 48 {
        let to = word(number);
        words.extend(mix(word(number + 1), [7, 18, 3], true));
        words.extend([add(to, to, T0), add(to, to, word(number + 9))]);
        words.extend(mix(word(number + 14), [17, 19, 10], true));
        words.push(add(to, to, T0));
    }
}

/// The end of the message; the hash value is kept so far behind it.
const LAST: Register = 29;
const KEPT: i32 = 64;
/// Registers of the message's words.
const MESSAGE: [Register; 16] = [
    9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
];
/// Registers of the state.
const STATE: [Register; 8] = [1, 2, 3, 4, 5, 6, 7, 30];

pub(super) fn scalar() -> Vec<u32> {
    let mut words = begin();
    words.push(add(LAST, END, 0));
    words.extend(tables(INITIAL));
    for at in (0..32).step_by(4) {
        words.extend([lw(T0, TABLE, 256 + at), store(T0, LAST, KEPT + at, WORD)]);
    }
    let first = words.len();
    for (register, at) in STATE.into_iter().zip((KEPT..).step_by(4)) {
        words.push(lw(register, LAST, at));
    }
    for (register, at) in MESSAGE.into_iter().zip((0..).step_by(4)) {
        // REV8 turns doublewords.
        let turn = i_type(0x6b8, register, 5, register, 0x13);
        words.extend([lw(register, FROM, at), turn, srli(register, register, 32)]);
    }
    (0..64).for_each(|number| round(number, &mut words));
    for (register, at) in STATE.into_iter().zip((KEPT..).step_by(4)) {
        words.extend([lw(T0, LAST, at), add(T0, T0, register)]);
        words.push(store(T0, LAST, at, WORD));
    }
    words.extend([addi(FROM, FROM, 64), beq(FROM, LAST, 8)]);
    let back = distance(words.len() - first);
    words.push(jal(0, back));
    whole(&words, &[lw(CODE, LAST, KEPT)])
}

/// The constants are in v10 to v25, the message in v1 to v4, the state in v26 (f, e, b, a) and v27 (h, g, d, c).
pub(super) fn vector() -> Vec<u32> {
    let [a, b, c, d, e, f, g, h] = INITIAL;
    let (sum, new, old, kept_new, kept_old) = (5, 26, 27, 28, 29);
    let mut words = begin();
    words.push(add(LAST, END, 0));
    words.extend(tables([f, e, b, a, h, g, d, c]));
    words.push(vsetivli(0, 4, E32 | M1));
    for vd in (10..26).chain([new, old]) {
        words.extend([vle(32, vd, TABLE), addi(TABLE, TABLE, 16)]);
    }
    // A mask of each group's first element.
    words.push(op_v(0x17, 0, 1, 3, 0));
    let first = words.len();
    for vd in 1..5 {
        words.extend([vle(32, vd, FROM), addi(FROM, FROM, 16)]);
        words.push(op_v(0x12, vd, 9, 2, vd)); // vrev8.v
    }
    words.extend([vmv(kept_new, new), vmv(kept_old, old)]);
    for four in 0..16_u32 {
        let message = |later: u32| 1 + (four + later) % 4;
        words.push(vadd(sum, 10 + four, message(0)));
        words.extend([sha2(0x2f, old, new, sum), sha2(0x2e, new, old, sum)]);
        if four < 12 {
            words.push(op_v(0x17, message(2), message(1), 0, sum) & !(1 << 25)); // vmerge.vvm
            words.push(sha2(0x2d, message(0), sum, message(3)));
        }
    }
    words.extend([vadd(new, kept_new, new), vadd(old, kept_old, old)]);
    words.push(bne(FROM, LAST, distance(words.len() - first)));
    words.extend([addi(T0, LAST, KEPT), vse(32, new, T0)]);
    whole(&words, &[lw(CODE, LAST, KEPT + 12)])
}

const fn vmv(vd: Register, vs1: Register) -> u32 {
    op_v(0x17, 0, vs1, 0, vd)
}

const fn vadd(vd: Register, vs2: Register, vs1: Register) -> u32 {
    op_v(0, vs2, vs1, 0, vd)
}

/// VSHA2MS, VSHA2CH or VSHA2CL.
const fn sha2(funct6: u32, vd: Register, vs2: Register, vs1: Register) -> u32 {
    op_v(funct6, vs2, vs1, 2, vd) ^ 0x20
}
