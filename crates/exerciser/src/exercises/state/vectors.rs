//! The vector part of `state`: registers and CSRs that an absence must keep, and that begin as nobody else's.

use exerciser::random::Random;

use super::Tally;
use crate::arch::vector::{self, Control, MAX_LENGTH, MAX_WORDS};
use crate::board::board;
use crate::harts::Hart;

/// Tests whether the harts have vectors that can be checked.
pub fn are_here() -> bool {
    if !board().has("v") {
        return false;
    }
    vector::set_status(3);
    vector::length() <= MAX_LENGTH
}

/// vtype with vill alone set.
const ILLEGAL_TYPE: u64 = 1 << 63;

/// Doublewords of all registers of this hart.
fn words() -> usize {
    32 * vector::length() / 8
}

/// Checks that the registers, which this hart has not used yet, hold nothing.
pub fn check_unused(hart: &Hart, tally: &Tally) {
    let mut found = [u64::MAX; MAX_WORDS];
    vector::set_status(1);
    let control = vector::store(&mut found);
    let Control {
        vstart,
        vcsr,
        vl,
        vtype,
    } = control;
    tally.check(hart, "vstart out of reset", 0, vstart);
    tally.check(hart, "vcsr out of reset", 0, vcsr);
    tally.check(hart, "vl out of reset", 0, vl);
    tally.check(hart, "vtype out of reset", ILLEGAL_TYPE, vtype);
    for value in &found[..words()] {
        tally.check(hart, "a vector register out of reset", 0, *value);
    }
}

/// Contents of a hart's vector unit.
#[derive(Debug)]
pub struct Held {
    values: [u64; MAX_WORDS],
    control: Control,
    /// VS of the look at them.
    status: u64,
}

impl Held {
    /// Fills the registers and CSRs, and leaves VS at any value. Every other time they are filled twice, and VS is Initial or Clean in
    /// between: it says nothing of what comes afterwards.
    pub fn fill(random: &mut Random) -> Self {
        vector::set_status(3);
        if random.one_in(2) {
            let values = core::array::from_fn(|_| random.next());
            vector::load(&values, Control::default());
            vector::set_status(1 + random.below(2));
        }
        let values = core::array::from_fn(|_| random.next());
        let wanted = Control {
            vstart: random.below(8),
            vcsr: random.below(8),
            vl: random.below(2 * MAX_LENGTH as u64 * 8),
            // vma, vta, vsew up to 64 bits, and vlmul: some of these types are illegal, which sets vill.
            vtype: random.below(4) << 6 | random.below(4) << 3 | random.below(8),
        };
        let control = vector::load(&values, wanted);
        // Off, Initial and Clean are what the guest says of its own copy; the registers stay.
        vector::set_status(random.below(4));
        Self {
            values,
            control,
            status: 1 + random.below(3),
        }
    }

    /// Checks that all is still there.
    pub fn check(&self, hart: &Hart, tally: &Tally) {
        vector::set_status(self.status);
        let mut found = [0; MAX_WORDS];
        let control = vector::store(&mut found);
        let (wanted, words) = (self.control, words());
        tally.check(hart, "vstart", wanted.vstart, control.vstart);
        tally.check(hart, "vcsr", wanted.vcsr, control.vcsr);
        tally.check(hart, "vl", wanted.vl, control.vl);
        tally.check(hart, "vtype", wanted.vtype, control.vtype);
        for (wanted, found) in self.values.iter().zip(&found).take(words) {
            tally.check(hart, "a vector register", *wanted, *found);
        }
    }
}
