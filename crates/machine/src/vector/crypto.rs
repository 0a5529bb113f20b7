//! Vector cryptography: "Zvkned", "Zvknhb", "Zvksed", "Zvksh" and "Zvkg", in element groups of 128 or 256 bits.

use super::encoding::{Reserved, category};
use super::group::{Group, Overlap};
use super::issue::{Checked, Issue};
use super::sbox;
use super::vtype::Width;

/// Words of a group of 128 bits.
const BLOCK: usize = 4;
/// Words of a group of 256 bits.
const WIDE_BLOCK: usize = 8;

type Words = [u32; BLOCK];
type WideWords = [u32; WIDE_BLOCK];

/// Bytes of a block in the order of memory.
fn bytes_of(words: Words) -> [u8; 16] {
    words
        .map(u32::to_le_bytes)
        .as_flattened()
        .try_into()
        .unwrap_or([0; 16])
}

fn words_of(bytes: [u8; 16]) -> Words {
    let (words, _) = bytes.as_chunks();
    let mut result = [0; BLOCK];
    for (to, from) in result.iter_mut().zip(words) {
        *to = u32::from_le_bytes(*from);
    }
    result
}

fn xor(a: Words, b: Words) -> Words {
    [a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2], a[3] ^ b[3]]
}

impl Issue<'_> {
    /// The opcode OP-VE, by funct6.
    pub(super) fn crypto(&mut self) -> Checked {
        if self.encoding.funct3() != category::MASK_VECTOR {
            return Err(Reserved);
        }
        self.unmasked()?;
        let rounds = u32::from(self.encoding.vs1());
        match self.encoding.funct6() {
            0x20 => self.sm3_expand(),
            0x21 => self.blocks(|_, keys, _| sbox::sm4_keys(keys, rounds & 7)),
            0x22 => self.blocks(|_, key, _| sbox::aes_key_128(key, rounds & 15)),
            0x28 => self.block_cipher(false),
            0x29 => self.block_cipher(true),
            0x2a => self.blocks(|old, key, _| sbox::aes_key_256(old, key, rounds & 15)),
            0x2b => self.sm3_compress(rounds),
            0x2c => self.blocks_of_three(|y, h, x| multiply(xor(y, x), h)),
            0x2d => self.sha2(sha::Step::Schedule),
            0x2e => self.sha2(sha::Step::CompressUpper),
            0x2f => self.sha2(sha::Step::CompressLower),
            _ => Err(Reserved),
        }
    }

    /// Checks that elements make whole groups of so many, and that LMUL registers hold one.
    fn check_groups(&self, elements: usize) -> Result<(), Reserved> {
        let vtype = self.unit.vtype();
        let whole = |index: usize| index.is_multiple_of(elements);
        if whole(self.unit.vl())
            && whole(self.unit.vstart.into())
            && vtype.max_elements(self.unit.length()) >= elements
        {
            Ok(())
        } else {
            Err(Reserved)
        }
    }

    #[inline(always)]
    fn words<const N: usize>(&self, register: u8, block: usize) -> [u32; N] {
        let mut words = [0; N];
        for (part, to) in words.chunks_exact_mut(BLOCK).enumerate() {
            let chunk = self.unit.chunk(register, block * (N / BLOCK) + part);
            for (to, from) in to.iter_mut().zip(chunk.as_chunks().0) {
                *to = u32::from_le_bytes(*from);
            }
        }
        words
    }

    #[inline(always)]
    fn set_words<const N: usize>(&mut self, register: u8, block: usize, words: [u32; N]) {
        for (part, from) in words.chunks_exact(BLOCK).enumerate() {
            let mut chunk = [0; 4 * BLOCK];
            for (to, from) in chunk.as_chunks_mut().0.iter_mut().zip(from) {
                *to = from.to_le_bytes();
            }
            self.unit
                .set_chunk(register, block * (N / BLOCK) + part, chunk);
        }
    }

    /// Groups of the body.
    fn body_groups(&self, elements: usize) -> std::ops::Range<usize> {
        let body = self.body();
        body.start / elements..body.end / elements
    }

    /// Refuses elements other than words, and groups that are not whole.
    fn check_words(&self, elements: usize) -> Result<(), Reserved> {
        if self.width()? == Width::WORD {
            self.check_groups(elements)
        } else {
            Err(Reserved)
        }
    }

    /// vd = f(vd, vs2, vs1) in blocks of N words.
    fn each_block<const N: usize>(
        &mut self,
        sources: &[Group],
        overlap: Overlap,
        f: impl Fn([u32; N], [u32; N], [u32; N]) -> [u32; N],
    ) -> Checked {
        self.check_words(N)?;
        self.check_all(self.destination()?, sources, false, overlap)?;
        let (vd, vs1, vs2) = (self.encoding.vd(), self.encoding.vs1(), self.encoding.vs2());
        for block in self.body_groups(N) {
            let (old, a, b) = (
                self.words(vd, block),
                self.words(vs2, block),
                self.words(vs1, block),
            );
            self.set_words(vd, block, f(old, a, b));
        }
        self.done()
    }

    fn blocks(&mut self, f: impl Fn(Words, Words, Words) -> Words) -> Checked {
        let source = self.group(self.encoding.vs2())?;
        self.each_block(&[source], Overlap::General, f)
    }

    fn blocks_of_three(&mut self, f: impl Fn(Words, Words, Words) -> Words) -> Checked {
        let sources = [
            self.group(self.encoding.vs2())?,
            self.group(self.encoding.vs1())?,
        ];
        self.each_block(&sources, Overlap::General, f)
    }

    /// AES, SM4's rounds and VGMUL by vs1. With `scalar` vs2 is one block for all of vd.
    fn block_cipher(&mut self, scalar: bool) -> Checked {
        let round: fn(Words, Words) -> Words = match (self.encoding.vs1(), scalar) {
            (0, _) => |state, key| {
                let state = xor(words_of(sbox::aes_unsubstitute(bytes_of(state))), key);
                words_of(sbox::aes_unmix(bytes_of(state)))
            },
            (1, _) => |state, key| xor(words_of(sbox::aes_unsubstitute(bytes_of(state))), key),
            (2, _) => |state, key| {
                let mixed = sbox::aes_mix(sbox::aes_substitute(bytes_of(state)));
                xor(words_of(mixed), key)
            },
            (3, _) => |state, key| xor(words_of(sbox::aes_substitute(bytes_of(state))), key),
            (7, true) => xor,
            (0x10, _) => sbox::sm4_rounds,
            (0x11, false) => multiply,
            _ => return Err(Reserved),
        };
        if !scalar {
            return self.blocks(|state, key, _| round(state, key));
        }
        self.check_words(BLOCK)?;
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        // A block takes one register: none is shorter.
        let source = Group::scalar(vs2, Width::WORD);
        self.check_all(self.destination()?, &[source], false, Overlap::Never)?;
        let key = self.words(vs2, 0);
        for block in self.body_groups(BLOCK) {
            let state = self.words(vd, block);
            self.set_words(vd, block, round(state, key));
        }
        self.done()
    }

    /// VSHA2MS, VSHA2CH and VSHA2CL: SHA-256 on words, SHA-512 on doublewords.
    fn sha2(&mut self, step: sha::Step) -> Checked {
        let width = self.width()?;
        if width != Width::WORD && width != Width::DOUBLE {
            return Err(Reserved);
        }
        self.check_groups(BLOCK)?;
        let (vd, vs1, vs2) = (self.encoding.vd(), self.encoding.vs1(), self.encoding.vs2());
        if !self.is_checked {
            let sources = [self.group(vs2)?, self.group(vs1)?];
            self.check_all(self.destination()?, &sources, false, Overlap::Never)?;
        }
        for block in self.body_groups(BLOCK) {
            if width == Width::WORD {
                // One by one: an array of arrays goes by memory, and is read there as another type than it was written.
                let old = self.words(vd, block);
                let a = self.words(vs2, block);
                let b = self.words(vs1, block);
                self.set_words(vd, block, sha::step(step, old, a, b));
            } else {
                let [old, a, b] = [vd, vs2, vs1].map(|register| self.doublewords(register, block));
                let result = sha::step(step, old, a, b);
                for (index, value) in result.into_iter().enumerate() {
                    let at = block * BLOCK + index;
                    self.unit.set_element(vd, at, Width::DOUBLE, value);
                }
            }
        }
        self.done()
    }

    fn doublewords(&self, register: u8, block: usize) -> [u64; BLOCK] {
        let at = block * BLOCK;
        [0, 1, 2, 3].map(|index| self.unit.element(register, at + index, Width::DOUBLE))
    }

    /// VSM3ME: eight more words of the message. The destination may be vs1.
    fn sm3_expand(&mut self) -> Checked {
        self.group(self.encoding.vs1())?.check()?;
        let later = self.group(self.encoding.vs2())?;
        self.each_block(&[later], Overlap::Never, |_, high: WideWords, low| {
            let mut message = [0_u32; 24];
            for (to, from) in message.iter_mut().zip(low.into_iter().chain(high)) {
                *to = from.swap_bytes();
            }
            for n in 16..24 {
                let mixed = message[n - 16] ^ message[n - 9] ^ message[n - 3].rotate_left(15);
                let mixed = mixed ^ mixed.rotate_left(15) ^ mixed.rotate_left(23);
                message[n] = mixed ^ message[n - 13].rotate_left(7) ^ message[n - 6];
            }
            let [.., a, b, c, d, e, f, g, h] = message;
            [a, b, c, d, e, f, g, h].map(u32::swap_bytes)
        })
    }

    /// VSM3C: two rounds.
    fn sm3_compress(&mut self, rounds: u32) -> Checked {
        let source = self.group(self.encoding.vs2())?;
        self.each_block(&[source], Overlap::Never, |state: WideWords, message, _| {
            let mut state = state.map(u32::swap_bytes);
            let message: WideWords = message.map(u32::swap_bytes);
            let [w0, w1, _, _, w4, w5, ..] = message;
            state = sm3_round(state, 2 * rounds, w0, w0 ^ w4);
            state = sm3_round(state, 2 * rounds + 1, w1, w1 ^ w5);
            state.map(u32::swap_bytes)
        })
    }
}

/// A round of SM3's compression function, GB/T 32905-2016, 5.3.3.
fn sm3_round(state: WideWords, round: u32, word: u32, mixed: u32) -> WideWords {
    let [a, b, c, d, e, f, g, h] = state;
    let (constant, first, second) = if round < 16 {
        (0x79cc_4519_u32, a ^ b ^ c, e ^ f ^ g)
    } else {
        (0x7a87_9d8a, a & b | a & c | b & c, e & f | !e & g)
    };
    let sum = a.rotate_left(12).wrapping_add(e);
    let ss1 = sum
        .wrapping_add(constant.rotate_left(round % 32))
        .rotate_left(7);
    let ss2 = ss1 ^ a.rotate_left(12);
    let tt1 = first.wrapping_add(d).wrapping_add(ss2).wrapping_add(mixed);
    let tt2 = second.wrapping_add(h).wrapping_add(ss1).wrapping_add(word);
    let folded = tt2 ^ tt2.rotate_left(9) ^ tt2.rotate_left(17);
    [tt1, a, b.rotate_left(9), c, folded, e, f.rotate_left(19), g]
}

/// Product in GCM's field; bits of each byte are in reverse.
fn multiply(a: Words, b: Words) -> Words {
    let integer = |words: Words| u128::from_le_bytes(bytes_of(words).map(u8::reverse_bits));
    let (a, mut b) = (integer(a), integer(b));
    let mut product = 0;
    for bit in 0..128 {
        if a >> bit & 1 != 0 {
            product ^= b;
        }
        // x^128 = x^7 + x^2 + x + 1.
        let carry = b >> 127;
        b = (b << 1) ^ (carry * 0x87);
    }
    words_of(product.to_le_bytes().map(u8::reverse_bits))
}

mod sha;
#[cfg(test)]
mod tests;
