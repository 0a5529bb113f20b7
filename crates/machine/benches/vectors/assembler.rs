//! Encodings that the programs need besides those of `program`, and what all of them begin and end with.

use super::BYTES;
pub(super) use crate::program::{
    Register, add, addi, and, andi, auipc, beq, bne, csrrs, end_with, i_type, jal, ld, lui, lw,
    slli, srli, sub, xor,
};

/// Where a round reads, where it writes, and where it ends to read.
pub(super) const FROM: Register = 8;
pub(super) const TO: Register = 9;
pub(super) const END: Register = 10;
/// Result with which a program ends, cut to six bits.
pub(super) const CODE: Register = 11;
/// Addresses of the two areas of 64 KiB, each with room behind it, in units of 64 KiB.
const SOURCE: u32 = 0x8010;
const DESTINATION: u32 = 0x8020;

/// funct3 of stores.
pub(super) const WORD: u32 = 2;
pub(super) const DOUBLE: u32 = 3;

/// vtype: widths of elements and registers of a group, tail and masked elements agnostic.
pub(super) const E8: u32 = 0xc0;
pub(super) const E32: u32 = 0xd0;
pub(super) const M1: u32 = 0;
pub(super) const M8: u32 = 3;

pub(super) const fn store(from: Register, base: Register, offset: i32, width: u32) -> u32 {
    let offset = offset.cast_unsigned();
    (offset >> 5 & 0x7f) << 25 | from << 20 | base << 15 | width << 12 | (offset & 31) << 7 | 0x23
}

pub(super) const fn blt(rs1: Register, rs2: Register, offset: i32) -> u32 {
    bne(rs1, rs2, offset) ^ 5 << 12
}

pub(super) const fn orc_b(rd: Register, rs1: Register) -> u32 {
    i_type(0x287, rs1, 5, rd, 0x13)
}

pub(super) const fn flw(rd: Register, base: Register, offset: i32) -> u32 {
    i_type(offset, base, 2, rd, 0x07)
}

pub(super) const fn fsw(from: Register, base: Register, offset: i32) -> u32 {
    store(from, base, offset, WORD) & !0x7f | 0x27
}

/// FMADD.S with the dynamic rounding mode: rd = rs1 x rs2 + rs3.
pub(super) const fn fmadd_s(rd: Register, rs1: Register, rs2: Register, rs3: Register) -> u32 {
    rs3 << 27 | rs2 << 20 | rs1 << 15 | 7 << 12 | rd << 7 | 0x43
}

pub(super) const fn vsetvli(rd: Register, avl: Register, vtype: u32) -> u32 {
    vtype << 20 | avl << 15 | 7 << 12 | rd << 7 | 0x57
}

pub(super) const fn vsetivli(rd: Register, elements: u32, vtype: u32) -> u32 {
    vsetvli(rd, elements, vtype) | 3 << 30
}

/// Selector of a width in loads and stores.
const fn width(bits: u32) -> u32 {
    match bits {
        8 => 0,
        16 => 5,
        32 => 6,
        _ => 7,
    }
}

pub(super) const fn vle(bits: u32, vd: Register, base: Register) -> u32 {
    1 << 25 | base << 15 | width(bits) << 12 | vd << 7 | 0x07
}

pub(super) const fn vle_first_fault(bits: u32, vd: Register, base: Register) -> u32 {
    vle(bits, vd, base) | 0x10 << 20
}

pub(super) const fn vse(bits: u32, vs3: Register, base: Register) -> u32 {
    vle(bits, vs3, base) | 0x20
}

/// An instruction of OP-V without a mask: funct6, vs2, what stands in the place of vs1, funct3 and vd.
pub(super) const fn op_v(funct6: u32, vs2: Register, vs1: u32, funct3: u32, vd: Register) -> u32 {
    funct6 << 26 | 1 << 25 | vs2 << 20 | vs1 << 15 | funct3 << 12 | vd << 7 | 0x57
}

pub(super) const fn vmseq_vi(vd: Register, vs2: Register, immediate: u32) -> u32 {
    op_v(0x18, vs2, immediate, 3, vd)
}

pub(super) const fn vfirst(rd: Register, vs2: Register) -> u32 {
    op_v(0x10, vs2, 0x11, 2, rd)
}

pub(super) const fn vfmacc_vf(vd: Register, factor: Register, vs2: Register) -> u32 {
    op_v(0x2c, vs2, factor, 5, vd)
}

/// Displacement that goes back over so many instructions.
pub(super) const fn distance(instructions: usize) -> i32 {
    -4 * instructions as i32
}

/// Instructions of [`begin`].
pub(super) const BEGIN: usize = 6;

/// Sets the registers of a round.
pub(super) fn begin() -> Vec<u32> {
    let mut words = [address(FROM, SOURCE), address(TO, DESTINATION)].concat();
    words.extend([lui(END, BYTES >> 12), add(END, END, FROM)]);
    words
}

/// Makes a register an address, which LUI alone would sign-extend.
const fn address(register: Register, area: u32) -> [u32; 2] {
    [lui(register, area), slli(register, register, 4)]
}

/// A round as a program: fills both areas with one word, which is a normal number and has no byte of zeros. Behind each stand a
/// doubleword of zeros and that word once more. Then it does the rounds, and ends with six bits of [`CODE`], which `last` makes.
pub(super) fn whole(round: &[u32], last: &[u32]) -> Vec<u32> {
    let (word, at, rounds) = (5, 6, 31);
    // The number of rounds stands behind the first instruction.
    let mut words = vec![jal(0, 8), 0];
    // Floating point and vectors on: mstatus.FS and VS.
    words.extend([lui(word, 6), addi(word, word, 0x600), csrrs(0, 0x300, word)]);
    words.extend([lui(word, 0x3f8cd), addi(word, word, -0x333)]);
    words.extend([slli(at, word, 32), add(word, word, at)]);
    for area in [SOURCE, DESTINATION] {
        words.extend(address(at, area));
        words.extend([
            lui(END, BYTES >> 12),
            add(END, END, at),
            store(word, at, 0, DOUBLE),
            addi(at, at, 8),
            bne(at, END, -8),
            store(word, at, 8, DOUBLE),
        ]);
    }
    let here = distance(words.len());
    words.extend([auipc(rounds, 0), lw(rounds, rounds, here + 4)]);
    let first = words.len();
    words.extend(round);
    words.extend([addi(rounds, rounds, -1), beq(rounds, 0, 8)]);
    let back = distance(words.len() - first);
    words.push(jal(0, back));
    words.extend(last);
    words.extend([andi(CODE, CODE, 63), addi(CODE, CODE, 1)]);
    words.extend(end_with(CODE, 5, 6));
    words
}

/// A program with its number of rounds.
pub(super) fn with_rounds(words: &[u32], rounds: u32) -> Vec<u32> {
    let mut words = words.to_vec();
    words[1] = rounds;
    words
}
