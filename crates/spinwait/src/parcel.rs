//! Encodings of the instructions that spin loops are made of.

use crate::register::{Register, Width};

/// Bytes of a WRS.NTO or a PAUSE.
pub const WAIT_LENGTH: u64 = 4;

/// Bits of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// Compressed, 16 bits.
    Short(u32),
    /// 32 bits.
    Long(u32),
}

impl Parcel {
    /// Length in bytes.
    pub const fn length(self) -> u64 {
        match self {
            Self::Short(_) => 2,
            Self::Long(_) => 4,
        }
    }
}

/// Reads the instruction at an address; `None` if a halfword of it cannot be read.
pub fn fetch(at: u64, halfword: impl Fn(u64) -> Option<u16>) -> Option<Parcel> {
    let low = halfword(at)?;
    if low & 3 != 3 {
        return Some(Parcel::Short(u32::from(low)));
    }
    let high = halfword(at.wrapping_add(2))?;
    Some(Parcel::Long(u32::from(high) << 16 | u32::from(low)))
}

fn register(field: u32) -> Register {
    Register::from_field(field)
}

/// Register of a three-bit field.
fn short(field: u32) -> Register {
    Register::from_short_field(field)
}

/// Low `bits` bits of a value, as a signed number.
fn signed(value: u32, bits: u32) -> i64 {
    let unused = 32 - bits;
    i64::from((value << unused).cast_signed() >> unused)
}

/// Bit `from` of a value, moved to `to`.
fn bit(value: u32, from: u32, to: u32) -> u32 {
    (value >> from & 1) << to
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Destination.
    pub to: Register,
    /// Base register.
    pub base: Register,
    /// Offset in bytes.
    pub offset: i64,
    /// Width.
    pub width: Width,
    /// Set for sign extension, false for zero extension.
    pub signed: bool,
}

/// Decodes LW, LD and their compressed forms.
pub fn load(parcel: Parcel) -> Option<Load> {
    let stack = Register::from_field(2);
    Some(match parcel {
        Parcel::Long(bits) if matches!(bits & 0x707f, 0x2003 | 0x3003) => Load {
            to: register(bits >> 7),
            base: register(bits >> 15),
            offset: signed(bits >> 20, 12),
            width: if bits & 0x1000 == 0 {
                Width::Word
            } else {
                Width::Double
            },
            signed: true,
        },
        // C.LW: offset bits 5:3 in 12:10, 2 in 6, 6 in 5.
        Parcel::Short(bits) if bits & 0xe003 == 0x4000 => Load {
            to: short(bits >> 2),
            base: short(bits >> 7),
            offset: i64::from((bits >> 10 & 7) << 3 | bit(bits, 6, 2) | bit(bits, 5, 6)),
            width: Width::Word,
            signed: true,
        },
        // C.LD: offset bits 5:3 in 12:10, 7:6 in 6:5.
        Parcel::Short(bits) if bits & 0xe003 == 0x6000 => Load {
            to: short(bits >> 2),
            base: short(bits >> 7),
            offset: i64::from((bits >> 10 & 7) << 3 | (bits >> 5 & 3) << 6),
            width: Width::Double,
            signed: true,
        },
        // C.LWSP: offset bit 5 in 12, 4:2 in 6:4, 7:6 in 3:2.
        Parcel::Short(bits) if bits & 0xe003 == 0x4002 => Load {
            to: register(bits >> 7),
            base: stack,
            offset: i64::from(bit(bits, 12, 5) | (bits >> 4 & 7) << 2 | (bits >> 2 & 3) << 6),
            width: Width::Word,
            signed: true,
        },
        // C.LDSP: offset bit 5 in 12, 4:3 in 6:5, 8:6 in 4:2.
        Parcel::Short(bits) if bits & 0xe003 == 0x6002 => Load {
            to: register(bits >> 7),
            base: stack,
            offset: i64::from(bit(bits, 12, 5) | (bits >> 5 & 3) << 3 | (bits >> 2 & 7) << 6),
            width: Width::Double,
            signed: true,
        },
        _ => return None,
    })
}

/// Decodes SLLI or, if `right`, SRLI by 48: destination and source. C.SLLI and C.SRLI write what they read.
pub fn shift_by_48(parcel: Parcel, right: bool) -> Option<(Register, Register)> {
    let long = if right { 0x0300_5013 } else { 0x0300_1013 };
    match parcel {
        Parcel::Long(bits) if bits & 0xfff0_707f == long => {
            Some((register(bits >> 7), register(bits >> 15)))
        }
        // C.SLLI: 000 1 rd 10000 10. C.SRLI: 100 1 00 rd' 10000 01.
        Parcel::Short(bits) if !right && bits & 0xf07f == 0x1042 => {
            Some((register(bits >> 7), register(bits >> 7)))
        }
        Parcel::Short(bits) if right && bits & 0xfc7f == 0x9041 => {
            Some((short(bits >> 7), short(bits >> 7)))
        }
        _ => None,
    }
}

/// Decodes ZEXT.H (Zbb on RV64): destination and source.
pub fn zero_extend_half(parcel: Parcel) -> Option<(Register, Register)> {
    match parcel {
        Parcel::Long(bits) if bits & 0xfff0_707f == 0x0800_403b => {
            Some((register(bits >> 7), register(bits >> 15)))
        }
        _ => None,
    }
}

/// Decodes SEXT.W, which is ADDIW or C.ADDIW of 0: destination and source.
pub fn sign_extend_word(parcel: Parcel) -> Option<(Register, Register)> {
    match parcel {
        Parcel::Long(bits) if bits & 0xfff0_707f == 0x0000_001b => {
            Some((register(bits >> 7), register(bits >> 15)))
        }
        Parcel::Short(bits) if bits & 0xf07f == 0x2001 => {
            Some((register(bits >> 7), register(bits >> 7)))
        }
        _ => None,
    }
}

/// Decodes shifts by 48, ANDI, ZEXT.H and SEXT.W: destination.
pub fn simple_operation(parcel: Parcel) -> Option<Register> {
    let pair = shift_by_48(parcel, false)
        .or_else(|| shift_by_48(parcel, true))
        .or_else(|| zero_extend_half(parcel))
        .or_else(|| sign_extend_word(parcel));
    match parcel {
        _ if pair.is_some() => pair.map(|(to, _)| to),
        Parcel::Long(bits) if bits & 0x707f == 0x7013 => Some(register(bits >> 7)),
        // C.ANDI: 100 imm 10 rd' imm 01.
        Parcel::Short(bits) if bits & 0xec03 == 0x8801 => Some(short(bits >> 7)),
        _ => None,
    }
}

/// Decodes AUIPC: destination, and distance from its own address.
pub fn upper_immediate(parcel: Parcel) -> Option<(Register, i64)> {
    match parcel {
        Parcel::Long(bits) if bits & 0x7f == 0x17 => Some((
            register(bits >> 7),
            i64::from((bits & 0xffff_f000).cast_signed()),
        )),
        _ => None,
    }
}

/// Decodes DIV by zero, with which Linux spends time before a PAUSE on harts that have M: destination.
pub fn divide_by_zero(parcel: Parcel) -> Option<Register> {
    match parcel {
        Parcel::Long(bits) if bits & 0xfff0_707f == 0x0200_4033 => Some(register(bits >> 7)),
        _ => None,
    }
}

/// Returns true for FENCE with any operands; PAUSE is one.
pub fn is_fence(parcel: Parcel) -> bool {
    matches!(parcel, Parcel::Long(bits) if bits & 0x707f == 0x0f)
}

/// Decodes LR.W and LR.D.
pub fn load_reserved(parcel: Parcel) -> Option<Load> {
    match parcel {
        // AMO with funct5 00010 and no second source.
        Parcel::Long(bits) if matches!(bits & 0xf9f0_707f, 0x1000_202f | 0x1000_302f) => {
            Some(load_of(bits))
        }
        _ => None,
    }
}

/// Load of an instruction of the major opcode AMO.
fn load_of(bits: u32) -> Load {
    Load {
        to: register(bits >> 7),
        base: register(bits >> 15),
        offset: 0,
        width: if bits & 0x1000 == 0 {
            Width::Word
        } else {
            Width::Double
        },
        signed: true,
    }
}

/// Decodes AMOSWAP, AMOOR and AMOAND of words and doublewords: load, operation, and operand register.
pub fn atomic(parcel: Parcel) -> Option<(Load, Atomic, Register)> {
    let Parcel::Long(bits) = parcel else {
        return None;
    };
    if !matches!(bits & 0x707f, 0x202f | 0x302f) {
        return None;
    }
    let operation = match bits >> 27 {
        0b00001 => Atomic::Swap,
        0b01000 => Atomic::Or,
        0b01100 => Atomic::And,
        _ => return None,
    };
    Some((load_of(bits), operation, register(bits >> 20)))
}

/// Operation of an AMO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// AMOSWAP.
    Swap,
    /// AMOOR.
    Or,
    /// AMOAND.
    And,
}

impl Atomic {
    /// Returns true if it leaves a word of this width unchanged.
    #[must_use]
    pub const fn keeps(self, word: u64, operand: u64, width: Width) -> bool {
        let after = match self {
            Self::Swap => operand,
            Self::Or => word | operand,
            Self::And => word & operand,
        };
        width.truncate(after) == width.truncate(word)
    }
}

/// Decodes RDTIME: destination.
pub fn read_time(parcel: Parcel) -> Option<Register> {
    match parcel {
        // CSRRS of time, number 0xC01, with x0.
        Parcel::Long(bits) if bits & 0xffff_f07f == 0xc010_2073 => Some(register(bits >> 7)),
        _ => None,
    }
}

/// Decodes JALR without a link, and C.JR: address register and offset.
pub fn jump_register(parcel: Parcel) -> Option<(Register, i64)> {
    match parcel {
        Parcel::Long(bits) if bits & 0x7fff == 0x0067 => {
            Some((register(bits >> 15), signed(bits >> 20, 12)))
        }
        // C.JR: 100 0 rs1 00000 10; with x0 it is reserved.
        Parcel::Short(bits) if bits & 0xf07f == 0x8002 && bits >> 7 & 0x1f != 0 => {
            Some((register(bits >> 7), 0))
        }
        _ => None,
    }
}

/// Decodes JAL without a link, and C.J: offset.
pub fn jump(parcel: Parcel) -> Option<i64> {
    match parcel {
        // JAL: offset bit 20 in 31, 10:1 in 30:21, 11 in 20, 19:12 in 19:12.
        Parcel::Long(bits) if bits & 0xfff == 0x06f => {
            let offset = bit(bits, 31, 20)
                | (bits >> 21 & 0x3ff) << 1
                | bit(bits, 20, 11)
                | (bits >> 12 & 0xff) << 12;
            Some(signed(offset, 21))
        }
        // C.J: offset 11|4|9:8|10|6|7|3:1|5 in 12:2.
        Parcel::Short(bits) if bits & 0xe003 == 0xa001 => {
            let offset = bit(bits, 12, 11)
                | bit(bits, 11, 4)
                | (bits >> 9 & 3) << 8
                | bit(bits, 8, 10)
                | bit(bits, 7, 6)
                | bit(bits, 6, 7)
                | (bits >> 3 & 7) << 1
                | bit(bits, 2, 5);
            Some(signed(offset, 12))
        }
        _ => None,
    }
}

/// Decodes a branch: compared registers, true for BEQ and BNE and their compressed forms, and offset.
pub fn branch(parcel: Parcel) -> Option<((Register, Register), bool, i64)> {
    match parcel {
        // BRANCH: offset bit 12 in 31, 10:5 in 30:25, 4:1 in 11:8, 11 in 7. BEQ and BNE are 0 and 1.
        Parcel::Long(bits) if bits & 0x7f == 0x63 => {
            let offset = bit(bits, 31, 12)
                | (bits >> 25 & 0x3f) << 5
                | (bits >> 8 & 0xf) << 1
                | bit(bits, 7, 11);
            let compared = (register(bits >> 15), register(bits >> 20));
            Some((compared, bits >> 13 & 3 == 0, signed(offset, 13)))
        }
        // C.BEQZ and C.BNEZ: offset 8|4:3 in 12:10, 7:6|2:1|5 in 6:2.
        Parcel::Short(bits) if bits & 0xc003 == 0xc001 => {
            let offset = bit(bits, 12, 8)
                | (bits >> 10 & 3) << 3
                | (bits >> 5 & 3) << 6
                | (bits >> 3 & 3) << 1
                | bit(bits, 2, 5);
            Some(((short(bits >> 7), register(0)), true, signed(offset, 9)))
        }
        _ => None,
    }
}
