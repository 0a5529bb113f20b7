//! `reboot`: asks for a cold reboot after `delay-ms`. There is no verdict line but the next run's.

use exerciser::arguments::Arguments;

use super::{Exercise, Outcome, Verdict};
use crate::arch::{csr, sbi};
use crate::board::board;
use crate::console::say;
use crate::harts;

pub const EXERCISE: Exercise = Exercise {
    name: "reboot",
    parameters: &["delay-ms"],
    run,
};

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let delay = arguments.number("delay-ms", 0, 0, 1 << 32)?;
    let end = csr::time() + board().ticks(delay * 1000);
    while csr::time() < end {
        harts::sleep_until(end);
    }
    say!("reboot");
    let answer = sbi::reboot();
    say!("reboot refused: error {}", answer.error);
    Ok(Verdict::Fail)
}
