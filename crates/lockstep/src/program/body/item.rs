//! Item of a program: an instruction or a few, with its jump.

use crate::assembler::{C_NOP, b, jal};
use crate::layout::PLACE;
use crate::random::Random;

/// Registers that instructions may write, besides x31, which holds addresses and operands.
pub(super) const DESTINATIONS: [u32; 22] = [
    0, 5, 6, 7, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
];
/// The register for addresses and operands that are made just before their use.
pub(super) const TEMPORARY: u32 = 31;

/// Where an item jumps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    /// Nowhere.
    None,
    /// JAL with this destination as the item's first instruction.
    Jal(u32),
    /// A branch: `funct3`, rs1, rs2.
    Branch(u32, u32, u32),
    /// C.J, C.BEQZ or C.BNEZ without its offset, as the first half-word.
    Compressed(u16),
    /// JALR by x31, after an AUIPC that stands before it.
    Computed,
}

/// An instruction or a few that belong together, in whole places.
#[derive(Debug, Clone)]
pub struct Item {
    /// Text of the instruction for people.
    pub text: String,
    /// Offset from the start of the code.
    pub offset: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) jump: Jump,
    /// Items to jump over.
    pub(super) distance: usize,
}

impl Item {
    pub(super) fn new(text: impl Into<String>, halves: &[u16]) -> Self {
        let mut bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        while !(bytes.len() as u64).is_multiple_of(PLACE) || bytes.is_empty() {
            bytes.extend(C_NOP.to_le_bytes());
        }
        Self {
            text: text.into(),
            offset: 0,
            bytes,
            jump: Jump::None,
            distance: 0,
        }
    }

    /// An item of 32-bit instructions.
    pub(super) fn words(text: impl Into<String>, words: &[u32]) -> Self {
        let halves: Vec<u16> = words
            .iter()
            .flat_map(|word| [*word as u16, (word >> 16) as u16])
            .collect();
        Self::new(text, &halves)
    }

    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Tests whether the text names an integer register; that of compressed instructions names none, and
    /// they may use any.
    #[must_use]
    pub fn mentions(&self, register: usize) -> bool {
        let name = format!("x{register}");
        let mut words = self.text.split(|letter: char| !letter.is_alphanumeric());
        self.text.starts_with("compressed") || words.any(|word| word == name)
    }

    /// Tests whether where the program goes on depends on its operands.
    #[must_use]
    pub const fn is_conditional(&self) -> bool {
        matches!(self.jump, Jump::Branch(..) | Jump::Compressed(_))
    }

    /// The bytes, in hexadecimal half-words.
    #[must_use]
    pub fn halves(&self) -> String {
        let halves = self.bytes.chunks(2).map(|half| match half {
            [low, high] => format!("{:04x}", u16::from_le_bytes([*low, *high])),
            _ => String::new(),
        });
        halves.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn patch(&mut self, at: usize, word: u32) {
        self.bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Fills in the distance to the target.
    pub(super) fn resolve(&mut self, distance: i32) {
        match self.jump {
            Jump::None => {}
            Jump::Jal(rd) => self.patch(0, jal(rd, distance)),
            Jump::Branch(funct3, rs1, rs2) => self.patch(0, b(distance, rs2, rs1, funct3)),
            Jump::Computed => self.patch(4, crate::assembler::jalr(1, TEMPORARY, distance)),
            Jump::Compressed(code) => {
                let half = with_offset(code, distance);
                self.bytes[..2].copy_from_slice(&half.to_le_bytes());
            }
        }
    }
}

/// A destination register.
pub(super) fn destination(random: &mut Random) -> u32 {
    random.pick(&DESTINATIONS)
}

/// A source register: any.
pub(super) fn source(random: &mut Random) -> u32 {
    random.field(32)
}

/// Moves bit `from` of `value` to bit `to`.
const fn bit(value: i32, from: u32, to: u32) -> u16 {
    ((value >> from & 1) << to) as u16
}

/// The encoding with an offset of less than 256 bytes.
fn with_offset(code: u16, offset: i32) -> u16 {
    let low = bit(offset, 3, 4) | bit(offset, 2, 3) | bit(offset, 5, 2);
    if code >> 13 == 5 {
        // offset[11|4|9:8|10|6|7|3:1|5]
        code | bit(offset, 11, 12)
            | bit(offset, 4, 11)
            | bit(offset, 9, 10)
            | bit(offset, 8, 9)
            | bit(offset, 10, 8)
            | bit(offset, 6, 7)
            | bit(offset, 7, 6)
            | bit(offset, 3, 5)
            | bit(offset, 2, 4)
            | bit(offset, 1, 3)
            | bit(offset, 5, 2)
    } else {
        // offset[8|4:3] and offset[7:6|2:1|5]
        code | bit(offset, 8, 12)
            | bit(offset, 4, 11)
            | bit(offset, 3, 10)
            | bit(offset, 7, 6)
            | bit(offset, 6, 5)
            | low & 0x4
            | bit(offset, 2, 4)
            | bit(offset, 1, 3)
    }
}
