//! Waiting: WFI with and without a timer of its own, and Zawrs.
//!
//! A WFI that nothing ends is ended by M-mode's timer, which the harness sets far ahead.

pub use riscv::instruction::WFI as WAIT;
use riscv::instruction::{WRS_NTO, WRS_STO};

use super::item::{Item, TEMPORARY, destination};
use crate::assembler::{addi, b, csr as csr_word, csrw, i, r};
use crate::csr;
use crate::program::state::BASES;
use crate::random::Random;

/// Another register for what is made just before its use.
const OTHER: u32 = 30;
/// How far ahead a timer is set, in ticks: later than the WFI behind it on every computer, whatever
/// the steps of its clock, and sooner than the harness's own timer.
const AHEAD: i32 = 2000;

/// Something of these.
pub fn make(random: &mut Random) -> Item {
    match random.below(10) {
        0..3 => Item::words("wfi", &[WAIT]),
        3..6 => timer(csr::STIMECMP),
        6..8 => timer(csr::VSTIMECMP),
        _ => store(random),
    }
}

/// Sets a timer, waits, and puts the timer off. What cannot be done is left out: each place looks
/// at what the one before it has left.
fn timer(number: u16) -> Item {
    let nothing = addi(0, 0, 0);
    let ahead = addi(TEMPORARY, TEMPORARY, AHEAD);
    // The end is the last place; its distance from the branches is filled in below.
    let mut places = vec![
        [addi(TEMPORARY, 0, 0), csr_word(2, TEMPORARY, csr::TIME, 0)],
        [b(0, 0, TEMPORARY, 0), nothing],
    ];
    if number == csr::VSTIMECMP {
        // VS-mode's timer counts VS-mode's time.
        let sum = r(0, OTHER, TEMPORARY, 0, TEMPORARY, 0x33);
        places.push([csr_word(2, OTHER, csr::HTIMEDELTA, 0), nothing]);
        places.push([sum, nothing]);
    }
    let armed = places.len() + 2;
    places.extend([
        [ahead, nothing],
        [csrw(number, TEMPORARY), addi(TEMPORARY, 0, 1)],
        [addi(TEMPORARY, TEMPORARY, -1), b(0, 0, TEMPORARY, 1)],
        [WAIT, nothing],
        [addi(TEMPORARY, 0, -1), csrw(number, TEMPORARY)],
        // The time is nobody's business.
        [addi(TEMPORARY, 0, 0), nothing],
    ]);
    let end = 8 * (places.len() as i32 - 1);
    places[1][0] = b(end - 8, 0, TEMPORARY, 0);
    places[armed][1] = b(end - 8 * armed as i32 - 4, 0, TEMPORARY, 1);
    Item::words(format!("{} soon; wfi", csr::name(number)), &places.concat())
}

/// WRS behind LR, and behind an SC that takes the reservation away: WRS.NTO waits for ever where
/// there is one, and nothing is that ends it.
fn store(random: &mut Random) -> Item {
    let base = random.pick(&BASES);
    let offset = random.below(64) as i32 * 8;
    let width = random.pick(&[2, 3]);
    let rd = destination(random);
    let no_timeout = random.chance(50);
    let mut words = vec![
        addi(TEMPORARY, base, offset),
        i(-8, TEMPORARY, 7, TEMPORARY, 0x13),
        r(0x02 << 2, 0, TEMPORARY, width, rd, 0x2f),
    ];
    if no_timeout {
        words.push(r(0x03 << 2, rd, TEMPORARY, width, rd, 0x2f));
    }
    words.push(if no_timeout { WRS_NTO } else { WRS_STO });
    let name = if no_timeout { "sc; wrs.nto" } else { "wrs.sto" };
    Item::words(format!("lr x{rd}, {offset}(x{base}); {name}"), &words)
}
