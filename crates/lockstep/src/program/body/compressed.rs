//! The C extension, Zcb and Zcmop.

use super::item::{DESTINATIONS, Item};
use crate::random::Random;

/// x12 to x15 as three-bit register numbers: those that may be written.
fn short_destination(random: &mut Random) -> u16 {
    4 + random.below(4) as u16
}

/// Any three-bit register number.
fn short(random: &mut Random) -> u16 {
    random.below(8) as u16
}

/// x8 to x11: bases.
fn short_base(random: &mut Random) -> u16 {
    random.below(4) as u16
}

fn destination(random: &mut Random) -> u16 {
    loop {
        let register = random.pick(&DESTINATIONS);
        if register != 0 {
            return register as u16;
        }
    }
}

/// Reserved encodings, all of which are illegal.
const RESERVED: [u16; 8] = [
    0x0000, 0x2001, 0x6201, 0x6881, 0x9c79, 0x8c40, 0x4002, 0x8002,
];

/// An item of one to three compressed instructions.
pub fn make(random: &mut Random) -> Item {
    let mut halves = Vec::new();
    for _ in 0..1 + random.below(3) {
        halves.push(one(random));
    }
    let names: Vec<_> = halves.iter().map(|half| format!("{half:04x}")).collect();
    Item::new(format!("compressed {}", names.join(" ")), &halves)
}

fn one(random: &mut Random) -> u16 {
    let six = random.bits() as u16 & 0x107c;
    match random.below(29) {
        0 => 0x0001 | six | destination(random) << 7,
        1 => 0x2001 | six | destination(random) << 7,
        2 => 0x4001 | six | destination(random) << 7,
        // C.LUI with an immediate of zero is reserved.
        3 => 0x6001 | six | 4 | destination(random) << 7,
        4 => 0x8001 | six | short_destination(random) << 7,
        5 => 0x8401 | six | short_destination(random) << 7,
        6 => 0x8801 | six | short_destination(random) << 7,
        7..10 => {
            let operation = random.pick(&[0x8c01, 0x8c21, 0x8c41, 0x8c61, 0x9c01, 0x9c21, 0x9c41]);
            operation | short_destination(random) << 7 | short(random) << 2
        }
        10 => 0x0002 | six | destination(random) << 7,
        11 => 0x8002 | destination(random) << 7 | destination(random) << 2,
        12 => 0x9002 | destination(random) << 7 | destination(random) << 2,
        // C.ADDI4SPN; zero is reserved.
        13 => random.bits() as u16 & 0x1f80 | 0x20 | short_destination(random) << 2,
        14..17 => {
            // C.LW, C.LD, C.FLD.
            let operation = random.pick(&[0x4000, 0x6000, 0x2000]);
            let offset = random.bits() as u16 & 0x1c60;
            operation | offset | short_base(random) << 7 | short_destination(random) << 2
        }
        17..19 => {
            // C.SW, C.SD, C.FSD.
            let operation = random.pick(&[0xc000, 0xe000, 0xa000]);
            let offset = random.bits() as u16 & 0x1c60;
            operation | offset | short_base(random) << 7 | short(random) << 2
        }
        19..21 => {
            // C.LWSP, C.LDSP, C.FLDSP.
            let operation = random.pick(&[0x4002, 0x6002, 0x2002]);
            operation | six | destination(random) << 7
        }
        21..23 => {
            // C.SWSP, C.SDSP, C.FSDSP.
            let operation = random.pick(&[0xc002, 0xe002, 0xa002]);
            operation | random.bits() as u16 & 0x1ffc
        }
        // C.ZEXT.B to C.NOT.
        23 => 0x9c61 | short_destination(random) << 7 | (random.below(6) as u16) << 2,
        24..26 => {
            // C.LBU, C.LHU and C.LH.
            let operation = random.pick(&[0x8000, 0x8040, 0x8400, 0x8440]);
            let offset = random.bits() as u16 & 0x20;
            operation | offset | short_base(random) << 7 | short_destination(random) << 2
        }
        26 => {
            // C.SB and C.SH.
            let operation = random.pick(&[0x8800, 0x8840, 0x8c00]);
            let offset = random.bits() as u16 & 0x20;
            operation | offset | short_base(random) << 7 | short(random) << 2
        }
        // C.MOP.n.
        27 => 0x6081 | (random.below(8) as u16) << 8,
        _ => random.pick(&RESERVED),
    }
}

/// C.J, C.BEQZ or C.BNEZ without its offset.
pub fn jump(random: &mut Random) -> u16 {
    match random.below(3) {
        0 => 0xa001,
        1 => 0xc001 | short(random) << 7,
        _ => 0xe001 | short(random) << 7,
    }
}
