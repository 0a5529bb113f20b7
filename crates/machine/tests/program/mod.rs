//! Small bare-metal programs, put together by hand: no compiler for RISC-V is needed.
#![allow(dead_code, reason = "each user needs some of it")]

pub mod crossing;

use machine::timing::{PredictorProfile, Profile, ReplacementPolicy};

/// Where programs begin.
pub const BASE: u64 = 0x8000_0000;
/// Of the test finisher, for `lui`.
const FINISHER: u32 = 0x100;

/// A profile with a predictor so small that a few branches displace each other.
pub fn with_predictor(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    profile.predictor = Some(PredictorProfile {
        counters: 16,
        history: 3,
        targets: 4,
        target_ways: 2,
        replacement: ReplacementPolicy::Plru,
        returns: 2,
    });
    profile.costs.mispredict = 11;
    profile.costs.redirect = 3;
    profile
}

/// Integer registers by their number.
pub type Register = u32;

const fn r_type(
    funct7: u32,
    rs2: Register,
    rs1: Register,
    funct3: u32,
    rd: Register,
    opcode: u32,
) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

pub const fn i_type(immediate: i32, rs1: Register, funct3: u32, rd: Register, opcode: u32) -> u32 {
    (immediate.cast_unsigned() << 20) | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

pub const fn addi(rd: Register, rs1: Register, immediate: i32) -> u32 {
    i_type(immediate, rs1, 0, rd, 0x13)
}

pub const fn andi(rd: Register, rs1: Register, immediate: i32) -> u32 {
    i_type(immediate, rs1, 7, rd, 0x13)
}

pub const fn and(rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(0, rs2, rs1, 7, rd, 0x33)
}

pub const fn slli(rd: Register, rs1: Register, shift: i32) -> u32 {
    i_type(shift, rs1, 1, rd, 0x13)
}

pub const fn srli(rd: Register, rs1: Register, shift: i32) -> u32 {
    i_type(shift, rs1, 5, rd, 0x13)
}

pub const fn add(rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(0, rs2, rs1, 0, rd, 0x33)
}

pub const fn xor(rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(0, rs2, rs1, 4, rd, 0x33)
}

pub const fn sub(rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(0x20, rs2, rs1, 0, rd, 0x33)
}

pub const fn divu(rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(1, rs2, rs1, 5, rd, 0x33)
}

pub const fn mul(rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(1, rs2, rs1, 0, rd, 0x33)
}

pub const fn ld(rd: Register, rs1: Register, offset: i32) -> u32 {
    i_type(offset, rs1, 3, rd, 0x03)
}

pub const fn sd(rs2: Register, rs1: Register) -> u32 {
    r_type(0, rs2, rs1, 3, 0, 0x23)
}

pub const fn lw(rd: Register, rs1: Register, offset: i32) -> u32 {
    i_type(offset, rs1, 2, rd, 0x03)
}

pub const fn sw(rs2: Register, rs1: Register) -> u32 {
    r_type(0, rs2, rs1, 2, 0, 0x23)
}

pub const fn or(rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(0, rs2, rs1, 6, rd, 0x33)
}

/// Reads a CSR and writes it.
pub const fn csrrw(rd: Register, number: i32, rs1: Register) -> u32 {
    i_type(number, rs1, 1, rd, 0x73)
}

/// Reads a CSR and sets bits of it.
pub const fn csrrs(rd: Register, number: i32, rs1: Register) -> u32 {
    i_type(number, rs1, 2, rd, 0x73)
}

/// Loads a constant of 32 bits, sign-extended.
pub const fn load_constant(rd: Register, value: u32) -> [u32; 2] {
    let low = (value << 20).cast_signed() >> 20;
    let page = value.wrapping_sub(low.cast_unsigned()) >> 12;
    [lui(rd, page), i_type(low, rd, 0, rd, 0x1b)] // lui, addiw
}

/// A cache-block operation: 0 to 2 are CBO.INVAL, CBO.CLEAN and CBO.FLUSH, 4 is CBO.ZERO.
pub const fn cbo(operation: i32, rs1: Register) -> u32 {
    i_type(operation, rs1, 2, 0, 0x0f)
}

#[allow(unused_imports, reason = "each test uses some of them")]
pub use riscv::instruction::{FENCE_I, WFI, WRS_NTO, WRS_STO};

pub const fn jalr(rd: Register, rs1: Register) -> u32 {
    i_type(0, rs1, 0, rd, 0x67)
}

pub const fn lui(rd: Register, page: u32) -> u32 {
    page << 12 | rd << 7 | 0x37
}

pub const fn auipc(rd: Register, pages: u32) -> u32 {
    pages << 12 | rd << 7 | 0x17
}

pub const fn bne(rs1: Register, rs2: Register, offset: i32) -> u32 {
    branch(1, rs1, rs2, offset)
}

pub const fn beq(rs1: Register, rs2: Register, offset: i32) -> u32 {
    branch(0, rs1, rs2, offset)
}

const fn branch(funct3: u32, rs1: Register, rs2: Register, offset: i32) -> u32 {
    let bits = offset.cast_unsigned();
    let high = (bits >> 12 & 1) << 31 | (bits >> 5 & 0x3f) << 25;
    let low = (bits >> 1 & 15) << 8 | (bits >> 11 & 1) << 7;
    high | rs2 << 20 | rs1 << 15 | funct3 << 12 | low | 0x63
}

pub const fn jal(rd: Register, offset: i32) -> u32 {
    let bits = offset.cast_unsigned();
    let immediate = (bits >> 20 & 1) << 31
        | (bits >> 1 & 0x3ff) << 21
        | (bits >> 11 & 1) << 20
        | bits & 0xff000;
    immediate | rd << 7 | 0x6f
}

/// An instruction of the A extension on a doubleword.
pub const fn atomic(funct5: u32, rd: Register, rs1: Register, rs2: Register) -> u32 {
    r_type(funct5 << 2, rs2, rs1, 3, rd, 0x2f)
}

/// Powers off, and waits for that; uses two registers.
pub const fn power_off(value: Register, address: Register) -> [u32; 6] {
    [
        lui(value, 5),
        addi(value, value, 0x555), // 0x5555: success
        lui(address, FINISHER),
        r_type(0, value, address, 2, 0, 0x23), // sw
        0x1050_0073,                           // wfi
        jal(0, -4),
    ]
}

/// Ends the run with the code in a register, which must not be zero and have no more than 16 bits; uses
/// two more registers.
pub const fn end_with(code: Register, value: Register, address: Register) -> [u32; 7] {
    [
        slli(code, code, 16),
        lui(value, 3),
        addi(value, value, 0x333), // 0x3333: failure, with a code
        or(value, value, code),
        lui(address, FINISHER),
        sw(value, address),
        jal(0, 0),
    ]
}

/// A program as an ELF file with one segment.
pub fn elf(program: &[u32]) -> Vec<u8> {
    let code: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]); // executable, RISC-V, version 1
    for word in [BASE, 64, 0] {
        file.extend(word.to_le_bytes()); // entry, program headers, section headers
    }
    file.extend([0; 4]);
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]); // load, rwx
    for word in [120, BASE, BASE, code.len() as u64, code.len() as u64, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

/// A program that writes `before` and then `value` to a CSR, and ends with 16 bits of what it then reads as, from bit `shift`
/// on, plus one.
pub fn write_csr_twice(number: i32, before: u64, value: u64, shift: i32) -> Vec<u32> {
    let (register, position) = (5, 6);
    let load = |value: u64| {
        [
            auipc(position, 0),
            ld(register, position, 12),
            jal(0, 12),
            value as u32,
            (value >> 32) as u32,
        ]
    };
    let mut words = load(before).to_vec();
    words.push(csrrw(0, number, register));
    words.extend(load(value));
    words.extend([csrrw(0, number, register), csrrs(register, number, 0)]);
    words.extend([
        srli(register, register, shift),
        slli(register, register, 48),
    ]);
    words.extend([srli(register, register, 48), addi(register, register, 1)]);
    words.extend(end_with(register, 30, 31));
    words
}
