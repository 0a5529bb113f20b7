//! Loads and stores of all kinds, through the bases.

use super::item::{Item, TEMPORARY, destination, source};
use crate::assembler::{addi, i, r, s};
use crate::program::setting::Mode;
use crate::program::state::{BASES, REACH};
use crate::random::Random;

/// An offset from a base, mostly aligned.
fn offset(random: &mut Random) -> i32 {
    let reach = u64::from(REACH.cast_unsigned());
    let offset = random.below(2 * reach) as i32 - REACH;
    if random.chance(80) {
        offset & !7
    } else {
        offset
    }
}

/// A load or store.
pub fn make(random: &mut Random) -> Item {
    let (base, offset) = (random.pick(&BASES), offset(random));
    match random.below(20) {
        0..8 => {
            let funct3 = random.pick(&[0, 1, 2, 3, 3, 4, 5, 6]);
            let name = ["lb", "lh", "lw", "ld", "lbu", "lhu", "lwu"][funct3 as usize];
            let rd = destination(random);
            let word = i(offset, base, funct3, rd, 0x03);
            Item::words(format!("{name} x{rd}, {offset}(x{base})"), &[word])
        }
        8..15 => {
            let funct3 = random.pick(&[0, 1, 2, 3, 3]);
            let name = ["sb", "sh", "sw", "sd"][funct3 as usize];
            let rs2 = source(random);
            let word = s(offset, rs2, base, funct3, 0x23);
            Item::words(format!("{name} x{rs2}, {offset}(x{base})"), &[word])
        }
        15..17 => {
            let funct3 = random.pick(&[2, 3, 1]);
            let name = ["", "flh", "flw", "fld"][funct3 as usize];
            let rd = random.field(32);
            let word = i(offset, base, funct3, rd, 0x07);
            Item::words(format!("{name} f{rd}, {offset}(x{base})"), &[word])
        }
        17..19 => {
            let funct3 = random.pick(&[2, 3, 1]);
            let name = ["", "fsh", "fsw", "fsd"][funct3 as usize];
            let rs2 = random.field(32);
            let word = s(offset, rs2, base, funct3, 0x27);
            Item::words(format!("{name} f{rs2}, {offset}(x{base})"), &[word])
        }
        _ => cache_block(base, offset, random),
    }
}

/// Zicbom and Zicboz.
fn cache_block(base: u32, offset: i32, random: &mut Random) -> Item {
    let (name, number) = random.pick(&[
        ("cbo.inval", 0),
        ("cbo.clean", 1),
        ("cbo.flush", 2),
        ("cbo.zero", 4),
        ("cbo.zero", 4),
    ]);
    let words = [
        addi(TEMPORARY, base, offset),
        i(number, TEMPORARY, 2, 0, 0x0f),
    ];
    Item::words(format!("{name} {offset}(x{base})"), &words)
}

/// AMOs: name and funct5.
const AMOS: [(&str, u32); 12] = [
    ("amoadd", 0x00),
    ("amoswap", 0x01),
    ("amoxor", 0x04),
    ("amoor", 0x08),
    ("amoand", 0x0c),
    ("amomin", 0x10),
    ("amomax", 0x14),
    ("amominu", 0x18),
    ("amomaxu", 0x1c),
    ("amocas", COMPARE),
    ("amocas", COMPARE),
    ("amocas", COMPARE),
];
/// AMOCAS.
const COMPARE: u32 = 0x05;

/// An atomic instruction, or LR and SC together.
pub fn make_atomic(random: &mut Random) -> Item {
    let (base, mut offset) = (random.pick(&BASES), offset(random));
    // Mostly aligned, whatever the base: ANDI takes the low bits away.
    let align = random.chance(95);
    offset &= !7;
    let address = addi(TEMPORARY, base, offset);
    let mask = |bytes: i32| {
        i(
            if align { -bytes } else { -1 },
            TEMPORARY,
            7,
            TEMPORARY,
            0x13,
        )
    };
    let (rd, rs2, order) = (destination(random), source(random), random.field(4));
    if random.chance(30) {
        // SC right behind LR: nothing comes between them.
        let width = random.pick(&[2, 3]);
        let letter = if width == 2 { "w" } else { "d" };
        let words = [
            address,
            mask(8),
            r(0x02 << 2 | order, 0, TEMPORARY, width, rd, 0x2f),
            r(0x03 << 2 | order, rs2, TEMPORARY, width, rd, 0x2f),
        ];
        let text = format!("lr.{letter} and sc.{letter} x{rd}, x{rs2}, {offset}(x{base})");
        return Item::words(text, &words);
    }
    let (name, funct5) = random.pick(&AMOS);
    let width = match random.below(8) {
        0 => 0,
        1 => 1,
        2..5 => 2,
        5 if funct5 == COMPARE => 4,
        _ => 3,
    };
    let letter = ["b", "h", "w", "d", "q"][width as usize];
    // Pairs begin with even registers, and the second one must be free to be written too.
    let (rd, rs2) = if width == 4 && random.chance(90) {
        (
            random.pick(&[0, 6, 12, 14, 18, 20, 22, 24, 26, 28]),
            rs2 & !1,
        )
    } else {
        (rd, rs2)
    };
    let amo = r(funct5 << 2 | order, rs2, TEMPORARY, width, rd, 0x2f);
    let mut words = vec![address, mask(1 << width)];
    if funct5 == COMPARE && rd != 0 && width < 4 && random.chance(60) {
        // What is compared is what is there, sometimes after a change by somebody else.
        words.push(i(0, TEMPORARY, width, rd, 0x03));
        if random.chance(20) {
            words.push(addi(rd, rd, 1));
        }
    }
    words.push(amo);
    Item::words(
        format!("{name}.{letter} x{rd}, x{rs2}, {offset}(x{base})"),
        &words,
    )
}

/// HLV, HLVX or HSV. In modes where they can do nothing but trap, mostly something else.
pub fn make_guest(mode: Mode, random: &mut Random) -> Item {
    if mode.is_virtual() && random.chance(80) {
        return make(random);
    }
    let (base, offset) = (random.pick(&BASES), offset(random));
    let (name, funct7, rs2) = random.pick(&[
        ("hlv.b", 0x30, 0),
        ("hlv.bu", 0x30, 1),
        ("hlv.h", 0x32, 0),
        ("hlv.hu", 0x32, 1),
        ("hlvx.hu", 0x32, 3),
        ("hlv.w", 0x34, 0),
        ("hlv.wu", 0x34, 1),
        ("hlvx.wu", 0x34, 3),
        ("hlv.d", 0x36, 0),
        ("hsv.b", 0x31, 32),
        ("hsv.h", 0x33, 32),
        ("hsv.w", 0x35, 32),
        ("hsv.d", 0x37, 32),
    ]);
    let address = addi(TEMPORARY, base, offset);
    if rs2 < 32 {
        let rd = destination(random);
        let words = [address, r(funct7, rs2, TEMPORARY, 4, rd, 0x73)];
        return Item::words(format!("{name} x{rd}, {offset}(x{base})"), &words);
    }
    let value = source(random);
    let words = [address, r(funct7, value, TEMPORARY, 4, 0, 0x73)];
    Item::words(format!("{name} x{value}, {offset}(x{base})"), &words)
}
