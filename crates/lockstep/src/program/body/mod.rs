//! The instructions of a program.

mod change;
mod compressed;
mod float;
mod integer;
mod memory;
mod system;
mod wait;

use super::state::State;
use super::tables::Leaf;
use super::{Mode, Slot};
use crate::assembler::{C_NOP, ECALL, b, jal};
use crate::layout::{self, PLACE};
use crate::random::Random;

/// Registers that instructions may write, besides x31, which holds addresses and operands.
const DESTINATIONS: [u32; 22] = [
    0, 5, 6, 7, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
];
/// The register for addresses and operands that are made just before their use.
const TEMPORARY: u32 = 31;

/// Bytes that items may take; one more still fits the page.
const ROOM: u64 = layout::PAGE - 0x200;
/// How far compressed branches reach, in bytes.
const COMPRESSED_REACH: u64 = 254;

/// Where an item jumps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jump {
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
    /// What it is, for people.
    pub text: String,
    /// Offset from the start of the code.
    pub offset: u64,
    bytes: Vec<u8>,
    jump: Jump,
    /// Items to jump over.
    distance: usize,
}

impl Item {
    fn new(text: impl Into<String>, halves: &[u16]) -> Self {
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
    fn words(text: impl Into<String>, words: &[u32]) -> Self {
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

    /// Whether the text names an integer register; that of compressed instructions names none, and
    /// they may use any.
    #[must_use]
    pub fn mentions(&self, register: usize) -> bool {
        let name = format!("x{register}");
        let mut words = self.text.split(|letter: char| !letter.is_alphanumeric());
        self.text.starts_with("compressed") || words.any(|word| word == name)
    }

    /// Whether where the program goes on depends on its operands.
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

    fn patch(&mut self, at: usize, word: u32) {
        self.bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Fills in the distance to the target.
    fn resolve(&mut self, distance: i32) {
        match self.jump {
            Jump::None => {}
            Jump::Jal(rd) => self.patch(0, jal(rd, distance)),
            Jump::Branch(funct3, rs1, rs2) => self.patch(0, b(distance, rs2, rs1, funct3)),
            Jump::Computed => self.patch(4, crate::assembler::jalr(1, TEMPORARY, distance)),
            Jump::Compressed(code) => {
                let half = compressed::with_offset(code, distance);
                self.bytes[..2].copy_from_slice(&half.to_le_bytes());
            }
        }
    }
}

/// A destination register.
fn destination(random: &mut Random) -> u32 {
    random.pick(&DESTINATIONS)
}

/// A source register: any.
fn source(random: &mut Random) -> u32 {
    random.field(32)
}

/// Makes the items of a program.
pub fn make(mode: Mode, state: &State, leaves: &[Leaf], random: &mut Random) -> Vec<Item> {
    let count = 24 + random.index(48);
    let mut items = Vec::with_capacity(count);
    let mut size = 0;
    while items.len() < count && size < ROOM {
        let item = match random.below(100) {
            0..2 => wait::make(random),
            2..4 => change::code(random),
            4..8 if !leaves.is_empty() => {
                change::table(&leaves[random.index(leaves.len())], mode, random)
            }
            4..22 => integer::make(random),
            22..32 => compressed::make(random),
            32..50 => memory::make(random),
            50..55 => memory::make_atomic(random),
            55..66 => float::make(random),
            66..73 => jump(random),
            73..80 => memory::make_guest(mode, random),
            _ => system::make(mode, state, random),
        };
        size += item.size();
        items.push(item);
    }
    items
}

/// A branch or a jump ahead.
fn jump(random: &mut Random) -> Item {
    let distance = 1 + random.index(5);
    let (rs1, rs2) = (source(random), source(random));
    let mut item = match random.below(6) {
        0 => {
            let rd = random.pick(&[0, 1]);
            let mut item = Item::words(format!("jal x{rd}"), &[0]);
            item.jump = Jump::Jal(rd);
            item
        }
        1..4 => {
            let funct3 = random.pick(&[0, 1, 4, 5, 6, 7]);
            let name = ["beq", "bne", "", "", "blt", "bge", "bltu", "bgeu"][funct3 as usize];
            let mut item = Item::words(format!("{name} x{rs1}, x{rs2}"), &[0]);
            item.jump = Jump::Branch(funct3, rs1, rs2);
            item
        }
        4 => {
            let code = compressed::jump(random);
            let mut item = Item::new(format!("compressed jump {code:#06x}"), &[code]);
            item.jump = Jump::Compressed(code);
            item
        }
        _ => {
            let words = [crate::assembler::auipc(TEMPORARY, 0), 0];
            let mut item = Item::words("auipc x31; jalr ra, (x31)", &words);
            item.jump = Jump::Computed;
            item
        }
    };
    item.distance = distance;
    item
}

/// Puts the items into the slot, with ECALLs behind them, and gives the address of the end.
pub fn place(slot: &mut Slot, items: &mut [Item]) -> u64 {
    let mut offset = layout::CODE;
    for item in items.iter_mut() {
        item.offset = offset;
        offset += item.size();
    }
    let end = offset;
    let offsets: Vec<u64> = items.iter().map(|item| item.offset).collect();
    for (index, item) in items.iter_mut().enumerate() {
        let limit = match item.jump {
            Jump::Compressed(_) => item.offset + COMPRESSED_REACH,
            _ => u64::MAX,
        };
        let next = index.saturating_add(item.distance);
        let target = offsets.get(next).copied().unwrap_or(end);
        let nearer = || offsets.iter().rev().find(|offset| **offset <= limit);
        let target = if target <= limit {
            target
        } else {
            nearer().copied().unwrap_or(end)
        };
        item.resolve((target - item.offset) as i32);
        slot.put(item.offset, &item.bytes);
    }
    while offset < layout::CODE + layout::PAGE {
        slot.put(offset, &ECALL.to_le_bytes());
        offset += 4;
    }
    slot.base + end
}
