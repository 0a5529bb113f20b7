//! The instructions of a program.

mod change;
mod compressed;
mod control_flow;
mod float;
mod integer;
mod item;
mod memory;
mod system;
mod vector;
mod wait;

pub use item::Item;
use item::{Jump, TEMPORARY, source};

use super::setting::{Features, Mode, Slot};
use super::state::State;
use super::tables::Leaf;
use crate::assembler::ECALL;
use crate::layout;
use crate::random::Random;

/// Bytes that items may take; one more still fits the page.
const ROOM: u64 = layout::PAGE - 0x200;
/// How far compressed branches reach, in bytes.
const COMPRESSED_REACH: u64 = 254;

/// Makes the items of a program.
pub fn make(
    mode: Mode,
    state: &State,
    leaves: &[Leaf],
    features: Features,
    random: &mut Random,
) -> Vec<Item> {
    let count = 24 + random.index(48);
    let mut items = Vec::with_capacity(count);
    let mut size = 0;
    let mut vectors = (features.vectors != 0).then(|| vector::Generator::new(features));
    while items.len() < count && size < ROOM {
        if let Some(generator) = &mut vectors
            && random.chance(65)
        {
            let item = generator.make(random);
            size += item.size();
            items.push(item);
            continue;
        }
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
            80..86 if features.control_flow => control_flow::make(random),
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
