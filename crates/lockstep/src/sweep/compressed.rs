//! Which 16-bit encodings are instructions: C, Zcb and Zcmop, from "RVC Instruction Set Listings" and "Zc*".

use super::Outcome;

/// Outcome that the specification gives an encoding of 16 bits.
#[must_use]
pub fn expected(word: u16) -> Outcome {
    let third = word >> 13;
    let rd = word >> 7 & 31;
    let second = word >> 2 & 31;
    let bit12 = word >> 12 & 1;
    let legal = match (word & 3, third) {
        // C.ADDI4SPN with nzuimm = 0 is reserved; 0 is the illegal instruction.
        (0, 0) => word >> 5 != 0,
        // C.LBU; C.LHU and C.LH; C.SB; C.SH.
        (0, 4) => match word >> 10 & 7 {
            0..=2 => true,
            3 => word >> 6 & 1 == 0,
            _ => false,
        },
        // C.ADDIW: rd = x0 is reserved.
        (1, 1) => rd != 0,
        // C.ADDI16SP and C.LUI with an immediate of zero are reserved; of these, C.MOP.n with odd n to 15 exist.
        (1, 3) => bit12 != 0 || second != 0 || rd % 2 == 1 && rd < 16,
        (1, 4) => match word >> 10 & 3 {
            0..=2 => true,
            // C.SUB, C.XOR, C.OR, C.AND; C.SUBW, C.ADDW, C.MUL; C.ZEXT.B to C.NOT.
            _ => match (bit12, word >> 5 & 3) {
                (1, 3) => word >> 2 & 7 <= 5,
                _ => true,
            },
        },
        // C.LWSP and C.LDSP: rd = x0 is reserved.
        (2, 2 | 3) => rd != 0,
        // C.JR with rs1 = x0 is reserved.
        (2, 4) => bit12 == 1 || second != 0 || rd != 0,
        _ => true,
    };
    if legal {
        Outcome::Legal
    } else {
        Outcome::Illegal
    }
}

/// All encodings of 16 bits that do not jump to themselves.
#[must_use]
pub fn words() -> Vec<u16> {
    let compressed = (0..=u16::MAX).filter(|word| word & 3 != 3);
    compressed.filter(|&word| !is_endless(word)).collect()
}

/// C.J, and C.BEQZ and C.BNEZ, with an offset of zero.
const fn is_endless(word: u16) -> bool {
    word & 3 == 1
        && (word >> 13 == 5 && word & 0x1ffc == 0 || word >> 13 >= 6 && word & 0x1c7c == 0)
}
