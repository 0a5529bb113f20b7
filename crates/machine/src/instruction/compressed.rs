//! The C extension: each 16-bit instruction is one 32-bit instruction.
//!
//! Unprivileged specification, chapters "C" (RV64C with F and D present), "Zcb", "Zcmop" and "Zicfiss".

/// The three-bit register field at `shift` of a compressed instruction: x8..=x15.
const fn short(code: u32, shift: u32) -> u32 {
    ((code >> shift) & 7) + 8
}

/// Moves bits `high..=low` of `code` so that bit `low` lands at `to`.
const fn field(code: u32, high: u32, low: u32, to: u32) -> u32 {
    ((code >> low) & ((1 << (high - low + 1)) - 1)) << to
}

const fn itype(immediate: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (immediate << 20) | (rs1 << 15) | (funct3 << 12) | (rd << 7) | opcode
}

const fn rtype(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (funct7 << 25) | (rs2 << 20) | (rs1 << 15) | (funct3 << 12) | (rd << 7) | opcode
}

const fn stype(immediate: u32, rs2: u32, rs1: u32, funct3: u32, opcode: u32) -> u32 {
    ((immediate >> 5) << 25)
        | (rs2 << 20)
        | (rs1 << 15)
        | (funct3 << 12)
        | ((immediate & 31) << 7)
        | opcode
}

const fn btype(immediate: u32, rs1: u32, funct3: u32) -> u32 {
    (field(immediate, 12, 12, 31) | field(immediate, 10, 5, 25))
        | (rs1 << 15)
        | (funct3 << 12)
        | (field(immediate, 4, 1, 8) | field(immediate, 11, 11, 7))
        | 0x63
}

const fn jtype(immediate: u32, rd: u32) -> u32 {
    field(immediate, 20, 20, 31)
        | field(immediate, 10, 1, 21)
        | field(immediate, 11, 11, 20)
        | field(immediate, 19, 12, 12)
        | (rd << 7)
        | 0x6f
}

/// The six-bit immediate of CI instructions, sign-extended to 32 bits.
const fn signed6(code: u32) -> u32 {
    let value = field(code, 12, 12, 5) | field(code, 6, 2, 0);
    if value & 0x20 != 0 {
        value | 0xffff_ffc0
    } else {
        value
    }
}

/// The 32-bit equivalent of a compressed instruction, or `None` if the encoding is reserved.
///
/// Hints expand to what computes nothing visible.
#[must_use]
pub const fn expand(code: u16) -> Option<u32> {
    let code = code as u32;
    match code & 3 {
        0 => quadrant0(code),
        1 => quadrant1(code),
        2 => quadrant2(code),
        _ => None,
    }
}

const fn quadrant0(code: u32) -> Option<u32> {
    let (low, high) = (short(code, 2), short(code, 7));
    let doubleword = field(code, 12, 10, 3) | field(code, 6, 5, 6);
    let word = field(code, 12, 10, 3) | field(code, 6, 6, 2) | field(code, 5, 5, 6);
    Some(match code >> 13 {
        0 => {
            let immediate = field(code, 12, 11, 4)
                | field(code, 10, 7, 6)
                | field(code, 6, 6, 2)
                | field(code, 5, 5, 3);
            if immediate == 0 {
                return None;
            }
            itype(immediate, 2, 0, low, 0x13)
        }
        1 => itype(doubleword, high, 3, low, 0x07),
        2 => itype(word, high, 2, low, 0x03),
        3 => itype(doubleword, high, 3, low, 0x03),
        4 => return narrow_access(code),
        5 => stype(doubleword, low, high, 3, 0x27),
        6 => stype(word, low, high, 2, 0x23),
        7 => stype(doubleword, low, high, 3, 0x23),
        _ => return None,
    })
}

/// Zcb: loads and stores of bytes and half-words.
const fn narrow_access(code: u32) -> Option<u32> {
    let (low, high) = (short(code, 2), short(code, 7));
    let byte = field(code, 6, 6, 0) | field(code, 5, 5, 1);
    let half = field(code, 5, 5, 1);
    Some(match (code >> 10 & 7, code >> 6 & 1) {
        (0, _) => itype(byte, high, 4, low, 0x03),
        (1, 0) => itype(half, high, 5, low, 0x03),
        (1, _) => itype(half, high, 1, low, 0x03),
        (2, _) => stype(byte, low, high, 0, 0x23),
        (3, 0) => stype(half, low, high, 1, 0x23),
        _ => return None,
    })
}

const fn quadrant1(code: u32) -> Option<u32> {
    let rd = (code >> 7) & 31;
    let immediate = signed6(code);
    Some(match code >> 13 {
        0 => itype(immediate & 0xfff, rd, 0, rd, 0x13),
        1 => {
            if rd == 0 {
                return None;
            }
            itype(immediate & 0xfff, rd, 0, rd, 0x1b)
        }
        2 => itype(immediate & 0xfff, 0, 0, rd, 0x13),
        3 if rd == 2 => {
            let value = field(code, 12, 12, 9)
                | field(code, 6, 6, 4)
                | field(code, 5, 5, 6)
                | field(code, 4, 3, 7)
                | field(code, 2, 2, 5);
            if value == 0 {
                return None;
            }
            let value = if value & 0x200 != 0 {
                value | 0xc00
            } else {
                value
            };
            itype(value, 2, 0, 2, 0x13)
        }
        // C.SSPUSH x1 and C.SSPOPCHK x5 take the place of C.MOP.1 and C.MOP.5.
        3 if immediate == 0 && rd == 1 => 0xce10_4073,
        3 if immediate == 0 && rd == 5 => 0xcdc2_c073,
        // C.MOP.n takes the place of C.LUI without an immediate: it changes nothing.
        3 if immediate == 0 && rd & 0x11 == 1 => itype(0, 0, 0, 0, 0x13),
        3 => {
            if immediate == 0 {
                return None;
            }
            (immediate << 12) | (rd << 7) | 0x37
        }
        4 => return arithmetic(code),
        5 => jtype(jump_offset(code), 0),
        6 => btype(branch_offset(code), short(code, 7), 0),
        _ => btype(branch_offset(code), short(code, 7), 1),
    })
}

const fn arithmetic(code: u32) -> Option<u32> {
    let rd = short(code, 7);
    let rs2 = short(code, 2);
    let shift = field(code, 12, 12, 5) | field(code, 6, 2, 0);
    Some(match (code >> 10) & 3 {
        0 => itype(shift, rd, 5, rd, 0x13),
        1 => itype(0x400 | shift, rd, 5, rd, 0x13),
        2 => itype(signed6(code) & 0xfff, rd, 7, rd, 0x13),
        _ => match (code >> 12 & 1, code >> 5 & 3) {
            (0, 0) => rtype(0x20, rs2, rd, 0, rd, 0x33),
            (0, 1) => rtype(0, rs2, rd, 4, rd, 0x33),
            (0, 2) => rtype(0, rs2, rd, 6, rd, 0x33),
            (0, _) => rtype(0, rs2, rd, 7, rd, 0x33),
            (_, 0) => rtype(0x20, rs2, rd, 0, rd, 0x3b),
            (_, 1) => rtype(0, rs2, rd, 0, rd, 0x3b),
            (_, 2) => rtype(1, rs2, rd, 0, rd, 0x33),
            _ => match code >> 2 & 7 {
                0 => itype(0xff, rd, 7, rd, 0x13),
                1 => itype(0x604, rd, 1, rd, 0x13),
                2 => rtype(4, 0, rd, 4, rd, 0x3b),
                3 => itype(0x605, rd, 1, rd, 0x13),
                4 => rtype(4, 0, rd, 0, rd, 0x3b),
                5 => itype(0xfff, rd, 4, rd, 0x13),
                _ => return None,
            },
        },
    })
}

const fn jump_offset(code: u32) -> u32 {
    let value = field(code, 12, 12, 11)
        | field(code, 11, 11, 4)
        | field(code, 10, 9, 8)
        | field(code, 8, 8, 10)
        | field(code, 7, 7, 6)
        | field(code, 6, 6, 7)
        | field(code, 5, 3, 1)
        | field(code, 2, 2, 5);
    if value & 0x800 != 0 {
        value | 0xffff_f000
    } else {
        value
    }
}

const fn branch_offset(code: u32) -> u32 {
    let value = field(code, 12, 12, 8)
        | field(code, 11, 10, 3)
        | field(code, 6, 5, 6)
        | field(code, 4, 3, 1)
        | field(code, 2, 2, 5);
    if value & 0x100 != 0 {
        value | 0xffff_fe00
    } else {
        value
    }
}

const fn quadrant2(code: u32) -> Option<u32> {
    let rd = (code >> 7) & 31;
    let rs2 = (code >> 2) & 31;
    let doubleword = field(code, 12, 12, 5) | field(code, 6, 5, 3) | field(code, 4, 2, 6);
    let word = field(code, 12, 12, 5) | field(code, 6, 4, 2) | field(code, 3, 2, 6);
    let store_doubleword = field(code, 12, 10, 3) | field(code, 9, 7, 6);
    let store_word = field(code, 12, 9, 2) | field(code, 8, 7, 6);
    Some(match code >> 13 {
        0 => itype(
            field(code, 12, 12, 5) | field(code, 6, 2, 0),
            rd,
            1,
            rd,
            0x13,
        ),
        1 => itype(doubleword, 2, 3, rd, 0x07),
        2 if rd != 0 => itype(word, 2, 2, rd, 0x03),
        3 if rd != 0 => itype(doubleword, 2, 3, rd, 0x03),
        4 => match (code >> 12 & 1, rd, rs2) {
            (0, 0, 0) => return None,
            (0, _, 0) => itype(0, rd, 0, 0, 0x67),
            (0, _, _) => rtype(0, rs2, 0, 0, rd, 0x33),
            (_, 0, 0) => 0x0010_0073,
            (_, _, 0) => itype(0, rd, 0, 1, 0x67),
            _ => rtype(0, rs2, rd, 0, rd, 0x33),
        },
        5 => stype(store_doubleword, rs2, 2, 3, 0x27),
        6 => stype(store_word, rs2, 2, 2, 0x23),
        7 => stype(store_doubleword, rs2, 2, 3, 0x23),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::expand;

    /// Pairs assembled by hand from the encoding tables of the specification.
    #[test]
    fn expands_to_the_instruction_of_the_tables() {
        let pairs = [
            (0x0001_u16, 0x0000_0013_u32), // c.nop         addi x0, x0, 0
            (0x4501, 0x0000_0513),         // c.li a0, 0    addi a0, x0, 0
            (0x557d, 0xfff0_0513),         // c.li a0, -1   addi a0, x0, -1
            (0x1141, 0xff01_0113),         // c.addi sp,-16 addi sp, sp, -16
            (0x8082, 0x0000_8067),         // c.jr ra       jalr x0, 0(ra)
            (0x9002, 0x0010_0073),         // c.ebreak      ebreak
            (0xe406, 0x0011_3423),         // c.sdsp ra,8   sd ra, 8(sp)
            (0x60a2, 0x0081_3083),         // c.ldsp ra,8   ld ra, 8(sp)
            (0x852e, 0x00b0_0533),         // c.mv a0,a1    add a0, x0, a1
            (0x8d89, 0x40a5_85b3),         // c.sub a1,a0   sub a1, a1, a0
            (0xa001, 0x0000_006f),         // c.j .         jal x0, 0
            (0x8168, 0x0035_4503),         // c.lbu a0,3(a0)  lbu a0, 3(a0)
            (0x8528, 0x0025_5503),         // c.lhu a0,2(a0)  lhu a0, 2(a0)
            (0x8568, 0x0025_1503),         // c.lh a0,2(a0)   lh a0, 2(a0)
            (0x8948, 0x00a5_00a3),         // c.sb a0,1(a0)   sb a0, 1(a0)
            (0x8d28, 0x00a5_1123),         // c.sh a0,2(a0)   sh a0, 2(a0)
            (0x9d61, 0x0ff5_7513),         // c.zext.b a0     andi a0, a0, 0xff
            (0x9d65, 0x6045_1513),         // c.sext.b a0     sext.b a0, a0
            (0x9d69, 0x0805_453b),         // c.zext.h a0     zext.h a0, a0
            (0x9d6d, 0x6055_1513),         // c.sext.h a0     sext.h a0, a0
            (0x9d71, 0x0805_053b),         // c.zext.w a0     add.uw a0, a0, x0
            (0x9d75, 0xfff5_4513),         // c.not a0        xori a0, a0, -1
            (0x9d4d, 0x02b5_0533),         // c.mul a0,a1     mul a0, a0, a1
            (0x6081, 0xce10_4073),         // c.sspush x1     sspush x1
            (0x6281, 0xcdc2_c073),         // c.sspopchk x5   sspopchk x5
            (0x6181, 0x0000_0013),         // c.mop.3         nop
            (0x6781, 0x0000_0013),         // c.mop.15        nop
        ];
        for (compressed, full) in pairs {
            assert_eq!(expand(compressed), Some(full), "{compressed:#06x}");
        }
    }

    #[test]
    fn reserved_encodings_are_refused() {
        for code in [
            0x0000, 0x2001, 0x6101, 0x6001, 0x6201, 0x6881, 0x8002, 0x4002, 0x8c40, 0x9000, 0x9c79,
            0x9c7d,
        ] {
            assert_eq!(expand(code), None, "{code:#06x}");
        }
    }
}
