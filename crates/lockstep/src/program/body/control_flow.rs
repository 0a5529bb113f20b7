//! Landing pads and shadow stacks.

use super::item::{Item, TEMPORARY, destination, source};
use crate::assembler::{addi, auipc, csr as csr_word, jalr, lui, r};
use crate::csr;
use crate::program::state::{BASES, REACH};
use crate::random::Random;

/// The register of labels.
const LABEL: u32 = 7;
const NOTHING: u32 = addi(0, 0, 0);

/// Something of these.
pub fn make(random: &mut Random) -> Item {
    match random.below(8) {
        0..3 => landing(random),
        3 => pointer(random),
        4 => swap(random),
        5 => {
            let rd = destination(random);
            Item::words(format!("ssrdp x{rd}"), &[0xcdc0_4073 | rd << 7])
        }
        _ => stack(random),
    }
}

/// LPAD with a label: AUIPC to x0.
const fn landing_pad(label: u32) -> u32 {
    auipc(0, label)
}

/// An indirect jump to a landing pad, whose label is the one that is expected, zero or another; or past it.
fn landing(random: &mut Random) -> Item {
    if random.chance(20) {
        let label = random.field(4);
        return Item::words(format!("lpad {label}"), &[landing_pad(label)]);
    }
    let expected = random.field(1 << 20);
    let label = random.pick(&[expected, expected, 0, expected ^ 1]);
    let rd = random.pick(&[0, 1, 5]);
    let (offset, place) = random.pick(&[
        (8, "it"),
        (8, "it"),
        (8, "it"),
        (12, "behind"),
        (10, "inside"),
    ]);
    let words = [
        lui(LABEL, expected),
        auipc(TEMPORARY, 0),
        jalr(rd, TEMPORARY, offset),
        landing_pad(label),
        NOTHING,
        NOTHING,
    ];
    let text = format!("lui x7, {expected:#x}; jalr x{rd} to {place}; lpad {label:#x}");
    Item::words(text, &words)
}

/// ssp becomes an address of data, or is read.
fn pointer(random: &mut Random) -> Item {
    if random.chance(30) {
        let rd = destination(random);
        return Item::words(format!("csrr x{rd}, ssp"), &[csr_word(2, rd, csr::SSP, 0)]);
    }
    let base = random.pick(&BASES);
    let rd = destination(random);
    let offset = random.below(2 * REACH as u64) as i32 - REACH;
    let words = [
        addi(TEMPORARY, base, offset),
        csr_word(1, rd, csr::SSP, TEMPORARY),
    ];
    Item::words(format!("csrrw x{rd}, ssp, x{base} + {offset}"), &words)
}

/// Pushes, checks, or both.
fn stack(random: &mut Random) -> Item {
    let (push, pop): (u32, u32) = random.pick(&[
        (0xce10_4073, 0xcdc0_c073),
        (0xce50_4073, 0xcdc2_c073),
        (0xce10_4073, 0xcdc2_c073),
    ]);
    match random.below(5) {
        0 => Item::words(format!("sspush {push:#x}"), &[push]),
        1 => Item::words(format!("sspopchk {pop:#x}"), &[pop]),
        2 => Item::new("c.sspush x1", &[0x6081]),
        3 => Item::new("c.sspopchk x5", &[0x6281]),
        _ => {
            let text = format!("sspush {push:#x}; sspopchk {pop:#x}");
            Item::words(text, &[push, NOTHING, pop, NOTHING])
        }
    }
}

fn swap(random: &mut Random) -> Item {
    let base = random.pick(&BASES);
    let (rd, rs2, width) = (destination(random), source(random), random.pick(&[2, 3]));
    let size = 1 << width;
    let words = [
        addi(TEMPORARY, base, size * random.below(16) as i32),
        // Mostly aligned.
        if random.chance(90) {
            crate::assembler::i(-size, TEMPORARY, 7, TEMPORARY, 0x13)
        } else {
            NOTHING
        },
        r(0x09 << 2 | random.field(4), rs2, TEMPORARY, width, rd, 0x2f),
    ];
    Item::words(format!("ssamoswap.{size} x{rd}, x{rs2}, (x{base})"), &words)
}
