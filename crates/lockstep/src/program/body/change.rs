//! Code and page tables that change while they are in use, with the fence that makes the change known.

use super::item::{Item, TEMPORARY, destination};
use crate::assembler::{addi, auipc, b, csr as csr_word, jal, ld, lui, r, s, sd};
use riscv::instruction::FENCE_I;

use crate::csr;
use crate::program::setting::Mode;
use crate::program::tables::{Leaf, Translation};
use crate::random::Random;

/// The register for what is to be stored.
const OTHER: u32 = 30;
const NOTHING: u32 = addi(0, 0, 0);

/// Words of an item in places of two, with branches to its end and data behind it.
#[derive(Default)]
struct Places {
    words: Vec<u32>,
    ends: Vec<usize>,
    /// Where AUIPC and a load of the data with this number stand.
    loads: Vec<(usize, usize, u32, usize)>,
}

impl Places {
    fn place(&mut self, words: [u32; 2]) {
        self.words.extend(words);
    }

    /// Goes to the end if a register is zero; a second instruction in the same place.
    fn leave_if_zero(&mut self, register: u32, then: u32) {
        self.ends.push(self.words.len());
        self.place([register, then]);
    }

    /// AUIPC into x31.
    const fn here(&self) -> usize {
        self.words.len()
    }

    /// Loads data by an AUIPC that stands at `from`.
    fn load(&mut self, from: usize, register: u32, data: usize) {
        self.loads.push((self.words.len(), from, register, data));
        self.words.push(0);
    }

    /// Everything, with the data behind a jump.
    fn finish(mut self, data: &[u64]) -> Vec<u32> {
        let end = self.words.len();
        for at in self.ends {
            let register = self.words[at];
            self.words[at] = b(4 * (end - at) as i32, 0, register, 0);
        }
        let start = end + 2;
        for (at, from, register, number) in self.loads {
            let offset = 4 * (start + 2 * number - from) as i32;
            self.words[at] = ld(register, TEMPORARY, offset);
        }
        let over = 4 * (2 + 2 * data.len()) as i32;
        self.words.extend([jal(0, over), NOTHING]);
        for value in data {
            self.words.extend([*value as u32, (value >> 32) as u32]);
        }
        self.words
    }
}

/// An instruction that is executed, changed and executed again.
pub fn code(random: &mut Random) -> Item {
    let rd = loop {
        let rd = destination(random);
        if rd != OTHER {
            break rd;
        }
    };
    let immediate = |random: &mut Random| random.below(4096) as i32 - 2048;
    let old = addi(rd, rd, immediate(random));
    let new = match random.below(3) {
        0 => addi(rd, rd, immediate(random)),
        1 => lui(rd, random.field(1 << 20)),
        // Two compressed instructions where one was: C.LI of the same register, twice.
        _ => {
            let half = 0x4001 | rd << 7 | random.field(32) << 2;
            half | half << 16
        }
    };
    let words = [
        addi(OTHER, 0, 0),
        NOTHING,
        // The instruction; when it has been changed, the end follows.
        old,
        b(28, 0, OTHER, 1),
        auipc(TEMPORARY, 0),
        crate::assembler::i(32, TEMPORARY, 2, OTHER, 0x03),
        b(16, 0, OTHER, 0),
        s(-8, OTHER, TEMPORARY, 2, 0x23),
        FENCE_I,
        jal(0, -28),
        jal(0, 12),
        NOTHING,
        new,
    ];
    Item::words(
        format!("change x{rd} {old:#010x} to {new:#010x}; fence.i"),
        &words,
    )
}

/// An access to what x31 holds.
fn access(leaf: &Leaf, mode: Mode, random: &mut Random) -> u32 {
    let guest = !matches!(leaf.translation, Translation::Host) && !mode.is_virtual();
    let store = random.chance(30);
    match (guest, store) {
        (false, false) => ld(0, TEMPORARY, 0),
        (false, true) => sd(0, TEMPORARY, 0),
        (true, false) => r(0x36, 0, TEMPORARY, 4, 0, 0x73),
        (true, true) => r(0x37, 0, TEMPORARY, 4, 0, 0x73),
    }
}

/// The fence for a stage, by its operands: of the address or of all, of the address space or of all.
fn invalidate(leaf: &Leaf, mode: Mode, address: u32, space: u32) -> u32 {
    let funct7 = match leaf.translation {
        Translation::Host => 0x09,
        Translation::Virtual if mode.is_virtual() => 0x09,
        Translation::Virtual => 0x11,
        Translation::Guest => 0x31,
    };
    r(funct7, space, address, 0, 0, 0x73)
}

/// A fence, or the three instructions of Svinval that make one.
fn fence(whole: u32, random: &mut Random) -> [u32; 4] {
    if random.chance(30) {
        // SFENCE.W.INVAL, the invalidation, SFENCE.INVAL.IR.
        [0x1800_0073, whole | 1 << 26, 0x1810_0073, NOTHING]
    } else {
        [whole, NOTHING, NOTHING, NOTHING]
    }
}

/// A leaf of a page table that is used, changed, fenced and used again. Nothing is changed if the
/// fence is not permitted.
pub fn table(leaf: &Leaf, mode: Mode, random: &mut Random) -> Item {
    let mut places = Places::default();
    if mode == Mode::Machine {
        // Data beside the code is loaded without translation.
        places.place([
            lui(TEMPORARY, 1 << 5),
            csr_word(3, 0, csr::MSTATUS, TEMPORARY),
        ]);
    }
    let by_address = random.chance(50);
    let by_space = !leaf.global && random.chance(50);
    let address = if by_address { TEMPORARY } else { 0 };
    let space = if by_space { OTHER } else { 0 };

    let from = places.here() + 1;
    places.place([addi(OTHER, 0, 0), auipc(TEMPORARY, 0)]);
    places.load(from, OTHER, 0);
    places.words.push(NOTHING);
    let from = places.here() + 1;
    places.leave_if_zero(OTHER, auipc(TEMPORARY, 0));
    places.load(from, TEMPORARY, 4);
    places.words.push(NOTHING);
    places.place([access(leaf, mode, random), NOTHING]);
    // Whether the fence is permitted.
    places.place([addi(OTHER, 0, 0), NOTHING]);
    places.place([invalidate(leaf, mode, 0, 0), addi(OTHER, 0, 1)]);
    let from = places.here() + 1;
    places.leave_if_zero(OTHER, auipc(TEMPORARY, 0));
    places.load(from, OTHER, 0);
    places.load(from, TEMPORARY, 1);
    places.place([sd(OTHER, TEMPORARY, 0), NOTHING]);
    let from = places.here();
    places.words.push(auipc(TEMPORARY, 0));
    places.load(from, OTHER, 3);
    places.load(from, TEMPORARY, 2);
    places.words.push(NOTHING);
    let whole = invalidate(leaf, mode, address, space);
    places.words.extend(fence(whole, random));
    let from = places.here();
    places.words.push(auipc(TEMPORARY, 0));
    places.load(from, TEMPORARY, 4);
    places.place([access(leaf, mode, random), NOTHING]);

    let value = random.pick(&leaf.values);
    let operand = match leaf.translation {
        Translation::Guest => leaf.view >> 2,
        _ => leaf.view,
    };
    let data = [value, leaf.place, operand, leaf.space, leaf.view];
    let text = format!(
        "change {:?} leaf of {:#x} to {value:#x}",
        leaf.translation, leaf.view
    );
    Item::words(text, &places.finish(&data))
}
