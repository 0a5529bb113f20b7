//! The few instructions of which a wait for a word is made, as the code of a guest shows them.

use crate::hart::decode::{Register, Width};

/// One instruction, of two or four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// A compressed one.
    Short(u32),
    /// One of 32 bits.
    Long(u32),
}

impl Parcel {
    /// Its length in bytes.
    pub const fn length(self) -> u64 {
        match self {
            Self::Short(_) => 2,
            Self::Long(_) => 4,
        }
    }
}

/// The instruction at an address; `None` where a halfword of it is not there.
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

/// The register of three bits that compressed instructions name.
fn short(field: u32) -> Register {
    Register::from_field(8 | field & 7)
}

/// The low `bits` bits of a value, as a signed number.
fn signed(value: u32, bits: u32) -> i64 {
    let unused = 32 - bits;
    i64::from((value << unused).cast_signed() >> unused)
}

/// Bit `from` of a value, as bit `to`.
fn bit(value: u32, from: u32, to: u32) -> u32 {
    (value >> from & 1) << to
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Where the value goes.
    pub to: Register,
    /// Holds the address, less the offset.
    pub base: Register,
    /// The offset.
    pub offset: i64,
    /// How much is loaded.
    pub width: Width,
    /// Whether the rest of the register is filled with the sign, or with zeros.
    pub signed: bool,
}

/// LW, LD and their compressed forms.
pub fn loaded(parcel: Parcel) -> Option<Load> {
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

/// SLLI or SRLI by 48: destination and source. C.SLLI and C.SRLI write what they read.
pub fn shifted(parcel: Parcel, right: bool) -> Option<(Register, Register)> {
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

/// ZEXT.H (Zbb on RV64): destination and source.
pub fn extended(parcel: Parcel) -> Option<(Register, Register)> {
    match parcel {
        Parcel::Long(bits) if bits & 0xfff0_707f == 0x0800_403b => {
            Some((register(bits >> 7), register(bits >> 15)))
        }
        _ => None,
    }
}

/// SEXT.W, which is ADDIW or C.ADDIW with nothing to add: destination and source.
pub fn sign_extended(parcel: Parcel) -> Option<(Register, Register)> {
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

/// Shifts, ANDI, ZEXT.H and SEXT.W: what is written.
pub fn computed(parcel: Parcel) -> Option<Register> {
    let pair = shifted(parcel, false)
        .or_else(|| shifted(parcel, true))
        .or_else(|| extended(parcel))
        .or_else(|| sign_extended(parcel));
    match parcel {
        _ if pair.is_some() => pair.map(|(to, _)| to),
        Parcel::Long(bits) if bits & 0x707f == 0x7013 => Some(register(bits >> 7)),
        // C.ANDI: 100 imm 10 rd' imm 01.
        Parcel::Short(bits) if bits & 0xec03 == 0x8801 => Some(short(bits >> 7)),
        _ => None,
    }
}

/// AUIPC: destination, and what is added to its own address.
pub fn upper_immediate(parcel: Parcel) -> Option<(Register, i64)> {
    match parcel {
        Parcel::Long(bits) if bits & 0x7f == 0x17 => Some((
            register(bits >> 7),
            i64::from((bits & 0xffff_f000).cast_signed()),
        )),
        _ => None,
    }
}

/// DIV by zero, by which Linux spends some time before a PAUSE where harts can multiply: its destination.
pub fn divided_by_zero(parcel: Parcel) -> Option<Register> {
    match parcel {
        Parcel::Long(bits) if bits & 0xfff0_707f == 0x0200_4033 => Some(register(bits >> 7)),
        _ => None,
    }
}

/// FENCE, of any operands; PAUSE is one.
pub fn is_fence(parcel: Parcel) -> bool {
    matches!(parcel, Parcel::Long(bits) if bits & 0x707f == 0x0f)
}

/// LR.W and LR.D: a load.
pub fn reserved(parcel: Parcel) -> Option<Load> {
    match parcel {
        // AMO with funct5 00010 and no second source.
        Parcel::Long(bits) if matches!(bits & 0xf9f0_707f, 0x1000_202f | 0x1000_302f) => {
            Some(load_of(bits))
        }
        _ => None,
    }
}

/// The load in an instruction of the major opcode AMO.
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

/// AMOSWAP, AMOOR and AMOAND of words and doublewords: the load in it, what is done, and the register with the operand.
pub fn atomic(parcel: Parcel) -> Option<(Load, Atomic, Register)> {
    let Parcel::Long(bits) = parcel else {
        return None;
    };
    if !matches!(bits & 0x707f, 0x202f | 0x302f) {
        return None;
    }
    let done = match bits >> 27 {
        0b00001 => Atomic::Swap,
        0b01000 => Atomic::Or,
        0b01100 => Atomic::And,
        _ => return None,
    };
    Some((load_of(bits), done, register(bits >> 20)))
}

/// What an atomic operation does to a word.
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
    /// Whether it leaves a word of this width as it is.
    #[must_use]
    pub const fn leaves(self, word: u64, operand: u64, width: Width) -> bool {
        let after = match self {
            Self::Swap => operand,
            Self::Or => word | operand,
            Self::And => word & operand,
        };
        width.truncate(after) == width.truncate(word)
    }
}

/// RDTIME: where the value goes.
pub fn clock(parcel: Parcel) -> Option<Register> {
    match parcel {
        // CSRRS of time, number 0xC01, with x0.
        Parcel::Long(bits) if bits & 0xffff_f07f == 0xc010_2073 => Some(register(bits >> 7)),
        _ => None,
    }
}

/// JALR without a link, or C.JR: which register has the address, and what is added to it.
pub fn jump_to(parcel: Parcel) -> Option<(Register, i64)> {
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

/// JAL without a link, or C.J: by how much.
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

/// A branch: what is compared, whether for being equal or not, and by how much it jumps.
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
