//! Integer instructions: I, M, Zba, Zbb, Zbc, Zbs, Zbkb, Zbkx, Zicond, Zimop, and the hints of Zihintntl and Zicbop.

use super::item::{Item, destination, source};
use crate::assembler::{C_NOP, i, lui, r};
use crate::random::Random;

/// Register-register instructions: name, opcode, funct7, funct3.
const REGISTER: [(&str, u32, u32, u32); 61] = [
    ("add", 0x33, 0x00, 0),
    ("sub", 0x33, 0x20, 0),
    ("sll", 0x33, 0x00, 1),
    ("slt", 0x33, 0x00, 2),
    ("sltu", 0x33, 0x00, 3),
    ("xor", 0x33, 0x00, 4),
    ("srl", 0x33, 0x00, 5),
    ("sra", 0x33, 0x20, 5),
    ("or", 0x33, 0x00, 6),
    ("and", 0x33, 0x00, 7),
    ("addw", 0x3b, 0x00, 0),
    ("subw", 0x3b, 0x20, 0),
    ("sllw", 0x3b, 0x00, 1),
    ("srlw", 0x3b, 0x00, 5),
    ("sraw", 0x3b, 0x20, 5),
    ("mul", 0x33, 0x01, 0),
    ("mulh", 0x33, 0x01, 1),
    ("mulhsu", 0x33, 0x01, 2),
    ("mulhu", 0x33, 0x01, 3),
    ("div", 0x33, 0x01, 4),
    ("divu", 0x33, 0x01, 5),
    ("rem", 0x33, 0x01, 6),
    ("remu", 0x33, 0x01, 7),
    ("mulw", 0x3b, 0x01, 0),
    ("divw", 0x3b, 0x01, 4),
    ("divuw", 0x3b, 0x01, 5),
    ("remw", 0x3b, 0x01, 6),
    ("remuw", 0x3b, 0x01, 7),
    ("min", 0x33, 0x05, 4),
    ("minu", 0x33, 0x05, 5),
    ("max", 0x33, 0x05, 6),
    ("maxu", 0x33, 0x05, 7),
    ("czero.eqz", 0x33, 0x07, 5),
    ("czero.nez", 0x33, 0x07, 7),
    ("sh1add", 0x33, 0x10, 2),
    ("sh2add", 0x33, 0x10, 4),
    ("sh3add", 0x33, 0x10, 6),
    ("sh1add.uw", 0x3b, 0x10, 2),
    ("sh2add.uw", 0x3b, 0x10, 4),
    ("sh3add.uw", 0x3b, 0x10, 6),
    ("add.uw", 0x3b, 0x04, 0),
    ("xnor", 0x33, 0x20, 4),
    ("orn", 0x33, 0x20, 6),
    ("andn", 0x33, 0x20, 7),
    ("bset", 0x33, 0x14, 1),
    ("bclr", 0x33, 0x24, 1),
    ("bext", 0x33, 0x24, 5),
    ("binv", 0x33, 0x34, 1),
    ("rol", 0x33, 0x30, 1),
    ("ror", 0x33, 0x30, 5),
    ("rolw", 0x3b, 0x30, 1),
    ("rorw", 0x3b, 0x30, 5),
    ("clmul", 0x33, 0x05, 1),
    ("clmulr", 0x33, 0x05, 2),
    ("clmulh", 0x33, 0x05, 3),
    ("pack", 0x33, 0x04, 4),
    ("packh", 0x33, 0x04, 7),
    ("packw", 0x3b, 0x04, 4),
    ("xperm4", 0x33, 0x14, 2),
    ("xperm8", 0x33, 0x14, 4),
    ("slt", 0x33, 0x00, 2),
];

/// Instructions with one operand: name, opcode, the upper twelve bits, funct3.
const UNARY: [(&str, u32, i32, u32); 11] = [
    ("clz", 0x13, 0x600, 1),
    ("ctz", 0x13, 0x601, 1),
    ("cpop", 0x13, 0x602, 1),
    ("sext.b", 0x13, 0x604, 1),
    ("sext.h", 0x13, 0x605, 1),
    ("clzw", 0x1b, 0x600, 1),
    ("ctzw", 0x1b, 0x601, 1),
    ("cpopw", 0x1b, 0x602, 1),
    ("orc.b", 0x13, 0x287, 5),
    ("rev8", 0x13, 0x6b8, 5),
    ("brev8", 0x13, 0x687, 5),
];

/// Shifts by an immediate: name, opcode, the bits above the amount, funct3, how many amounts.
const SHIFTS: [(&str, u32, i32, u32, u64); 13] = [
    ("slli", 0x13, 0x000, 1, 64),
    ("srli", 0x13, 0x000, 5, 64),
    ("srai", 0x13, 0x400, 5, 64),
    ("slliw", 0x1b, 0x000, 1, 32),
    ("srliw", 0x1b, 0x000, 5, 32),
    ("sraiw", 0x1b, 0x400, 5, 32),
    ("rori", 0x13, 0x600, 5, 64),
    ("roriw", 0x1b, 0x600, 5, 32),
    ("bseti", 0x13, 0x280, 1, 64),
    ("bclri", 0x13, 0x480, 1, 64),
    ("bexti", 0x13, 0x480, 5, 64),
    ("binvi", 0x13, 0x680, 1, 64),
    ("slli.uw", 0x1b, 0x080, 1, 64),
];

/// An integer instruction, sometimes at an address that four does not divide.
pub fn make(random: &mut Random) -> Item {
    let (text, word) = one(random);
    if random.chance(10) {
        return Item::new(text, &[C_NOP, word as u16, (word >> 16) as u16]);
    }
    Item::words(text, &[word])
}

fn one(random: &mut Random) -> (String, u32) {
    let rd = destination(random);
    let (rs1, rs2) = (source(random), source(random));
    match random.below(22) {
        0..10 => {
            let (name, opcode, funct7, funct3) = random.pick(&REGISTER);
            let word = r(funct7, rs2, rs1, funct3, rd, opcode);
            (format!("{name} x{rd}, x{rs1}, x{rs2}"), word)
        }
        10..12 => {
            let (name, opcode, upper, funct3) = random.pick(&UNARY);
            let word = i(upper, rs1, funct3, rd, opcode);
            (format!("{name} x{rd}, x{rs1}"), word)
        }
        12..15 => {
            let (name, opcode, upper, funct3, amounts) = random.pick(&SHIFTS);
            let amount = random.below(amounts) as i32;
            let word = i(upper | amount, rs1, funct3, rd, opcode);
            (format!("{name} x{rd}, x{rs1}, {amount}"), word)
        }
        15..18 => {
            let names = [
                ("addi", 0x13, 0),
                ("slti", 0x13, 2),
                ("sltiu", 0x13, 3),
                ("xori", 0x13, 4),
                ("ori", 0x13, 6),
                ("andi", 0x13, 7),
                ("addiw", 0x1b, 0),
            ];
            let (name, opcode, funct3) = random.pick(&names);
            let immediate = random.below(4096) as i32 - 2048;
            let word = i(immediate, rs1, funct3, rd, opcode);
            (format!("{name} x{rd}, x{rs1}, {immediate}"), word)
        }
        18 => may_be(rd, rs1, rs2, random),
        19 => hint(rs1, random),
        20 => {
            let upper = random.field(1 << 20);
            (format!("lui x{rd}, {upper:#x}"), lui(rd, upper))
        }
        _ => {
            let upper = random.field(1 << 20);
            let word = crate::assembler::auipc(rd, upper);
            (format!("auipc x{rd}, {upper:#x}"), word)
        }
    }
}

/// MOP.R.n and MOP.RR.n.
fn may_be(rd: u32, rs1: u32, rs2: u32, random: &mut Random) -> (String, u32) {
    if random.chance(50) {
        let n = random.field(32);
        let upper = 0x81c | n >> 4 << 10 | (n >> 2 & 3) << 6 | n & 3;
        let word = upper << 20 | rs1 << 15 | 4 << 12 | rd << 7 | 0x73;
        (format!("mop.r.{n} x{rd}, x{rs1}"), word)
    } else {
        let n = random.field(8);
        let word = r(0x41 | n >> 2 << 5 | (n & 3) << 1, rs2, rs1, 4, rd, 0x73);
        (format!("mop.rr.{n} x{rd}, x{rs1}, x{rs2}"), word)
    }
}

/// NTL.P1 and its likes, and PREFETCH.I, .R and .W.
fn hint(rs1: u32, random: &mut Random) -> (String, u32) {
    if random.chance(50) {
        let rs2 = 2 + random.field(4);
        (format!("ntl with x{rs2}"), r(0, rs2, 0, 0, 0, 0x33))
    } else {
        let (name, number) =
            random.pick(&[("prefetch.i", 0), ("prefetch.r", 1), ("prefetch.w", 3)]);
        let offset = (random.below(128) as i32 - 64) * 32;
        let text = format!("{name} {offset}(x{rs1})");
        (text, i(offset | number, rs1, 6, 0, 0x13))
    }
}
