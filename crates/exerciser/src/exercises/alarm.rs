//! `alarm`: alarms of the computer's real-time clock interrupt, each once, and not early.

use exerciser::arguments::Arguments;
use riscv::goldfish_rtc::{
    ALARM_HIGH, ALARM_LOW, CLEAR_INTERRUPT, IRQ_ENABLED, TIME_HIGH, TIME_LOW,
};

use super::{Exercise, Outcome, Verdict};
use crate::arch::memory::{device_load32, device_store32};
use crate::arch::{csr, team};
use crate::board::board;
use crate::console::say;
use crate::harts;
use crate::interrupts::{self, ALARM};

pub const EXERCISE: Exercise = Exercise {
    name: "alarm",
    parameters: &["count", "ahead-us", "limit-ms"],
    run,
};

/// Nanoseconds since 1970 by the clock at `base`. A read of the lower half latches the upper one.
fn read(base: u64) -> u64 {
    let low = device_load32(base + TIME_LOW);
    u64::from(device_load32(base + TIME_HIGH)) << 32 | u64::from(low)
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = arguments.number("count", 5, 1, 1 << 20)?;
    let ahead = arguments.number("ahead-us", 2000, 1, 1 << 30)?;
    let limit_ms = arguments.number("limit-ms", 5000, 1, 1 << 32)?;
    let (board, hart, clock) = (board(), team::current(), board().clock);
    if clock.address == 0 || clock.source == 0 {
        say!("alarm: there is no clock");
        return Ok(Verdict::Fail);
    }
    interrupts::route(clock, None, true, (hart, ALARM));
    device_store32(clock.address + IRQ_ENABLED, 1);
    let (mut lost, mut early) = (0, 0);
    for round in 1..=count {
        let alarm = read(clock.address) + ahead * 1000;
        device_store32(clock.address + ALARM_HIGH, (alarm >> 32) as u32);
        device_store32(clock.address + ALARM_LOW, alarm as u32);
        let limit = csr::time() + board.ticks(limit_ms * 1000);
        while hart.taken(ALARM) < round && csr::time() < limit {
            harts::sleep_until(limit.min(csr::time() + board.ticks(1000)));
        }
        early += u64::from(read(clock.address) < alarm);
        device_store32(clock.address + CLEAR_INTERRUPT, 1);
        interrupts::end(clock, true);
        // One that came twice is seen at the next.
        harts::sleep_until(csr::time() + board.ticks(1000));
        if hart.taken(ALARM) != round {
            lost += 1;
            break;
        }
    }
    let taken = hart.taken(ALARM);
    say!("alarm interrupts={taken} of {count} early={early}");
    Ok(Verdict::of(lost == 0 && early == 0))
}
