//! `events`: supervisor software events (SBI, "Supervisor Software Events Extension") that hardware raises are each hart's own: the overflow of a
//! counter, and a double trap.
//!
//! Interrupts are off all the time, so that only an event can interrupt. A double trap that is not told to its guest ends the VM, and there is no verdict.

use core::sync::atomic::{AtomicU64, Ordering};

use exerciser::arguments::Arguments;
use riscv::sbi::error::{ALREADY_STOPPED, NOT_SUPPORTED, SUCCESS};
use riscv::sbi::firmware_features::{DOUBLE_TRAP as DOUBLE_TRAPS, SET};
use riscv::sbi::performance::{CONFIGURE, CYCLES, RESET, SET_VALUE, START, STOP};
use riscv::sbi::software_events::{
    COUNTER_OVERFLOW, DISABLE, DOUBLE_TRAP, ENABLE, LOCAL_HIGH_PRIORITY_ERROR, REGISTER, UNMASK,
    UNREGISTER,
};
use riscv::sbi::{FWFT, PMU, SSE};

use super::{Exercise, Outcome, Verdict};
use crate::arch::events::{Taken, trap_twice};
use crate::arch::{csr, sbi};
use crate::board::board;
use crate::console::say;
use crate::harts::{self, Hart};

pub const EXERCISE: Exercise = Exercise {
    name: "events",
    parameters: &["harts", "rounds", "turns"],
    run,
};

/// Harts that take part.
const MAX_HARTS: usize = 64;

/// Events of each hart: overflows, and double traps, which go on behind the instruction.
static TAKEN: [[Taken; 2]; MAX_HARTS] =
    [const { [Taken::skipping(0), Taken::skipping(4)] }; MAX_HARTS];

/// Counts of all harts.
#[derive(Debug, Default)]
struct Found {
    overflows: AtomicU64,
    double_traps: AtomicU64,
    wrong: AtomicU64,
}

impl Found {
    fn check(&self, hart: &Hart, passed: bool, what: core::fmt::Arguments<'_>) {
        if !passed && self.wrong.fetch_add(1, Ordering::Relaxed) < 20 {
            say!("events: hart {} {what}", hart.index());
        }
    }

    /// Makes a call whose answer is known.
    fn call(
        &self,
        hart: &Hart,
        (extension, function): (u64, u64),
        arguments: &[u64],
        error: i64,
    ) -> u64 {
        let mut all = [0; 6];
        for (place, argument) in all.iter_mut().zip(arguments) {
            *place = *argument;
        }
        let answer = sbi::call(extension, function, all);
        self.check(
            hart,
            answer.error == error,
            format_args!(
                "{extension:#x} {function} {arguments:x?}: {}, not {error}",
                answer.error
            ),
        );
        answer.value
    }

    fn begin(&self, hart: &Hart, event: u32, taken: &'static Taken) {
        let event = u64::from(event);
        let [handler, argument] = taken.registration();
        self.call(hart, (SSE, REGISTER), &[event, handler, argument], SUCCESS);
        self.call(hart, (SSE, ENABLE), &[event], SUCCESS);
    }

    fn end(&self, hart: &Hart, event: u32) {
        self.call(hart, (SSE, DISABLE), &[event.into()], SUCCESS);
        self.call(hart, (SSE, UNREGISTER), &[event.into()], SUCCESS);
    }
}

/// Passes zero with a counter. Each time is one event, and none is an interrupt.
fn overflow(hart: &Hart, taken: &'static Taken, (rounds, turns): (u64, u64), found: &Found) {
    let counters = u64::from(u32::MAX) & !7;
    let counter = found.call(
        hart,
        (PMU, CONFIGURE),
        &[0, counters, 0, CYCLES, 0],
        SUCCESS,
    );
    for round in 0..rounds {
        let before = taken.count();
        let start = (1 + turns / 2).wrapping_neg();
        found.call(hart, (PMU, START), &[counter, 1, SET_VALUE, start], SUCCESS);
        csr::fence_often(turns);
        found.call(hart, (PMU, STOP), &[counter, 1, 0], SUCCESS);
        let events = taken.count() - before;
        found.check(
            hart,
            events == 1,
            format_args!("{events} events in round {round}"),
        );
        found.overflows.fetch_add(events, Ordering::Relaxed);
    }
    // The counter has stopped already; it loses its event.
    found.call(hart, (PMU, STOP), &[counter, 1, RESET], ALREADY_STOPPED);
    let pending = csr::pending() & riscv::csr::interrupt::LCOFI;
    found.check(hart, pending == 0, format_args!("an interrupt is pending"));
}

fn trap(hart: &Hart, taken: &'static Taken, rounds: u64, found: &Found) {
    found.call(hart, (FWFT, SET), &[DOUBLE_TRAPS, 1, 0], SUCCESS);
    for _ in 0..rounds {
        let before = taken.count();
        let at = trap_twice();
        let events = taken.count() - before;
        found.check(
            hart,
            events == 1 && taken.interrupted() == at,
            format_args!("{events} events at {:#x}, not {at:#x}", taken.interrupted()),
        );
        found.double_traps.fetch_add(events, Ordering::Relaxed);
    }
    found.call(hart, (FWFT, SET), &[DOUBLE_TRAPS, 0, 0], SUCCESS);
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let rounds = arguments.number("rounds", 20, 1, 1 << 32)?;
    let turns = arguments.number("turns", 20_000, 1000, 1 << 40)?;
    let counts = sbi::probe(PMU);
    let traps = board().isa.split('_').any(|name| name == "ssdbltrp");
    let found = Found::default();
    harts::run(count, &|hart: &Hart| {
        let Some([overflows, double_traps]) = TAKEN.get(hart.index()) else {
            return;
        };
        let open = csr::close_interrupts();
        found.call(hart, (SSE, UNMASK), &[], SUCCESS);
        let error = u64::from(LOCAL_HIGH_PRIORITY_ERROR);
        found.call(hart, (SSE, REGISTER), &[error, 4, 0], NOT_SUPPORTED);
        if traps {
            found.begin(hart, DOUBLE_TRAP, double_traps);
            trap(hart, double_traps, rounds, &found);
        } else {
            found.call(hart, (SSE, ENABLE), &[DOUBLE_TRAP.into()], NOT_SUPPORTED);
        }
        if counts {
            found.begin(hart, COUNTER_OVERFLOW, overflows);
            overflow(hart, overflows, (rounds, turns), &found);
            found.end(hart, COUNTER_OVERFLOW);
        } else {
            found.call(
                hart,
                (SSE, ENABLE),
                &[COUNTER_OVERFLOW.into()],
                NOT_SUPPORTED,
            );
        }
        if traps {
            found.end(hart, DOUBLE_TRAP);
        }
        if open {
            csr::open_interrupts();
        }
    });
    let wrong = found.wrong.into_inner();
    let (overflows, traps) = (
        found.overflows.into_inner(),
        found.double_traps.into_inner(),
    );
    say!("events overflows={overflows} double-traps={traps} wrong={wrong}");
    Ok(Verdict::of(wrong == 0))
}
