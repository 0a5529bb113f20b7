//! AES (FIPS 197) and SM4 (GB/T 32907-2016), as far as the instructions need them.

/// x^8 + x^4 + x^3 + x + 1.
const AES_FIELD: u16 = 0x11b;
/// x^8 + x^7 + x^6 + x^5 + x^4 + x^2 + 1.
const SM4_FIELD: u16 = 0x1f5;

/// Product of two bytes in a field.
const fn multiply(a: u8, b: u8, field: u16) -> u8 {
    let (mut a, mut product, mut bit) = (a as u16, 0, 0);
    while bit < 8 {
        if b >> bit & 1 != 0 {
            product ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= field;
        }
        bit += 1;
    }
    product as u8
}

/// The inverse of a byte; zero of zero: the 254th power.
const fn inverse(a: u8, field: u16) -> u8 {
    let (mut power, mut count) = (1, 0);
    while count < 254 {
        power = multiply(power, a, field);
        count += 1;
    }
    power
}

/// An affine map: bit i of the result is the parity of the value under `row` rotated left by i; then `constant` is added.
const fn affine(value: u8, row: u8, constant: u8) -> u8 {
    let (mut result, mut bit) = (0, 0);
    while bit < 8 {
        let parity = (value & row.rotate_left(bit)).count_ones() & 1;
        result |= (parity as u8) << bit;
        bit += 1;
    }
    result ^ constant
}

const AES: [u8; 256] = {
    let (mut table, mut index) = ([0; 256], 0);
    while index < 256 {
        // Bits i, i+4, i+5, i+6 and i+7 of the inverse: FIPS 197, equation 5.2.
        table[index] = affine(inverse(index as u8, AES_FIELD), 0xf1, 0x63);
        index += 1;
    }
    table
};

const AES_INVERSE: [u8; 256] = {
    let (mut table, mut index) = ([0; 256], 0);
    while index < 256 {
        table[AES[index] as usize] = index as u8;
        index += 1;
    }
    table
};

const SM4: [u8; 256] = {
    let (mut table, mut index) = ([0; 256], 0);
    while index < 256 {
        let inside = affine(index as u8, 0xa7, 0xd3);
        table[index] = affine(inverse(inside, SM4_FIELD), 0xa7, 0xd3);
        index += 1;
    }
    table
};

fn substituted(word: u32, table: &[u8; 256]) -> u32 {
    u32::from_le_bytes(word.to_le_bytes().map(|byte| table[usize::from(byte)]))
}

/// SubBytes and ShiftRows; columns are four bytes each.
pub(super) fn aes_substitute(state: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|at| AES[usize::from(state[(at + 4 * (at % 4)) % 16])])
}

/// InvShiftRows and InvSubBytes.
pub(super) fn aes_unsubstitute(state: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|at| AES_INVERSE[usize::from(state[(at + 12 * (at % 4)) % 16])])
}

/// The product of each column with a circulant matrix, by the matrix's first row.
fn mixed(state: [u8; 16], row: [u8; 4]) -> [u8; 16] {
    std::array::from_fn(|at| {
        let (column, own) = (at & !3, at % 4);
        (0..4).fold(0, |sum, other| {
            let factor = row[(other + 4 - own) % 4];
            sum ^ multiply(state[column + other], factor, AES_FIELD)
        })
    })
}

/// MixColumns.
pub(super) fn aes_mix(state: [u8; 16]) -> [u8; 16] {
    mixed(state, [2, 3, 1, 1])
}

/// InvMixColumns.
pub(super) fn aes_unmix(state: [u8; 16]) -> [u8; 16] {
    mixed(state, [14, 11, 13, 9])
}

/// Round constant of a number from 1: a power of x.
fn round_constant(number: u32) -> u32 {
    (1..number)
        .fold(1_u8, |power, _| multiply(power, 2, AES_FIELD))
        .into()
}

/// Each word of a round key from the one before it: the first from `seed`.
fn chained(seed: u32, before: [u32; 4]) -> [u32; 4] {
    let mut word = seed;
    before.map(|old| {
        word ^= old;
        word
    })
}

/// VAESKF1: the next round key of AES-128; rounds beyond 1 to 10 have bit 3 turned.
pub(super) fn aes_key_128(key: [u32; 4], round: u32) -> [u32; 4] {
    let round = if matches!(round, 1..=10) {
        round
    } else {
        round ^ 8
    };
    let seed = substituted(key[3].rotate_right(8), &AES) ^ round_constant(round);
    chained(seed, key)
}

/// VAESKF2: the next round key of AES-256 from the last two; rounds beyond 2 to 14 have bit 3 turned.
pub(super) fn aes_key_256(before: [u32; 4], key: [u32; 4], round: u32) -> [u32; 4] {
    let round = if matches!(round, 2..=14) {
        round
    } else {
        round ^ 8
    };
    let seed = if round & 1 != 0 {
        substituted(key[3], &AES)
    } else {
        substituted(key[3].rotate_right(8), &AES) ^ round_constant(round / 2)
    };
    chained(seed, before)
}

/// VSM4K: four round keys from four.
pub(super) fn sm4_keys(keys: [u32; 4], group: u32) -> [u32; 4] {
    let constant = |number: u32| {
        let byte = |index| (7 * (4 * number + index)) as u8;
        u32::from_be_bytes([byte(0), byte(1), byte(2), byte(3)])
    };
    sm4_steps(
        keys,
        |index| constant(4 * group + index),
        |word| word ^ word.rotate_left(13) ^ word.rotate_left(23),
    )
}

/// VSM4R: four rounds by four round keys.
pub(super) fn sm4_rounds(state: [u32; 4], keys: [u32; 4]) -> [u32; 4] {
    sm4_steps(
        state,
        |index| keys[index as usize % 4],
        |word| {
            word ^ word.rotate_left(2)
                ^ word.rotate_left(10)
                ^ word.rotate_left(18)
                ^ word.rotate_left(24)
        },
    )
}

fn sm4_steps(
    mut words: [u32; 4],
    added: impl Fn(u32) -> u32,
    spread: impl Fn(u32) -> u32,
) -> [u32; 4] {
    for index in 0..4 {
        let [first, second, third, fourth] = words;
        let inside = substituted(second ^ third ^ fourth ^ added(index), &SM4);
        words = [second, third, fourth, first ^ spread(inside)];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_begin_as_their_standards_say() {
        assert_eq!(AES[..4], [0x63, 0x7c, 0x77, 0x7b]);
        assert_eq!((AES[0x53], AES_INVERSE[0x63]), (0xed, 0));
        assert_eq!(SM4[..4], [0xd6, 0x90, 0xe9, 0xfe]);
        assert_eq!(SM4[0xff], 0x48);
    }

    /// FIPS 197, appendix B: the first round.
    #[test]
    fn a_round_is_the_standard_s() {
        let start = [
            0x19, 0x3d, 0xe3, 0xbe, 0xa0, 0xf4, 0xe2, 0x2b, 0x9a, 0xc6, 0x8d, 0x2a, 0xe9, 0xf8,
            0x48, 0x08,
        ];
        let mixed = aes_mix(aes_substitute(start));
        assert_eq!(mixed[..4], [0x04, 0x66, 0x81, 0xe5]);
        assert_eq!(aes_unsubstitute(aes_unmix(mixed)), start);
    }

    /// FIPS 197, appendix A.1: the key 2b7e1516 28aed2a6 abf71588 09cf4f3c.
    #[test]
    fn round_keys_are_the_standard_s() {
        let key = [0x2b7e_1516_u32, 0x28ae_d2a6, 0xabf7_1588, 0x09cf_4f3c].map(u32::swap_bytes);
        let next = aes_key_128(key, 1).map(u32::swap_bytes);
        assert_eq!(next, [0xa0fa_fe17, 0x8854_2cb1, 0x23a3_3939, 0x2a6c_7605]);
    }
}
