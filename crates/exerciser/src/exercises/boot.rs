//! `boot`: starts every hart, tells what it found, and ends.

use core::sync::atomic::{AtomicU64, Ordering};

use exerciser::arguments::Arguments;

use super::{Exercise, Outcome, Verdict};
use crate::arch::csr;
use crate::board::board;
use crate::console::say;
use crate::harts;

pub const EXERCISE: Exercise = Exercise {
    name: "boot",
    parameters: &["harts"],
    run,
};

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    // Under QEMU's `-icount shift=0` a nanosecond is an instruction.
    let to_here = board().nanoseconds(csr::time() - crate::start::entered());
    let seen = AtomicU64::new(0);
    harts::run(count, &|hart| {
        seen.fetch_or(1 << hart.index(), Ordering::Relaxed);
    });
    let board = board();
    say!("isa={}", board.isa);
    say!(
        "boot-ns={to_here} harts-seen={:#x} slots={}",
        seen.load(Ordering::Relaxed),
        board.slot_count
    );
    Ok(Verdict::of(
        seen.load(Ordering::Relaxed).count_ones() as usize == count,
    ))
}
