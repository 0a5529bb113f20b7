//! `steal`: steal-time accounting (SBI, "Steal-time Accounting Extension") beside what each hart sees by its own clock.
//!
//! First each hart computes and adds up the times in which it did not: that much must have been stolen. Then it sleeps: only the time from each
//! deadline to its end may be stolen. With `give-back=yes` (placement `paged`) it returns the page of its area meanwhile. In the end it takes the
//! area away, which must not be written from then on.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use abi::sbi::{EXTENSION, Function};
use exerciser::arguments::Arguments;
use riscv::sbi::error::{INVALID_ADDRESS, INVALID_PARAMETER, NOT_SUPPORTED, SUCCESS};
use riscv::sbi::steal_time::{AREA_SIZE, PREEMPTED, SEQUENCE, SET_AREA, STEAL};
use riscv::sbi::{NO_SHARED_MEMORY, STA};

use super::{Exercise, Outcome, Verdict};
use crate::arch::memory::{load, load32, store};
use crate::arch::{csr, sbi};
use crate::board::{MAX_HARTS, board};
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts;

pub const EXERCISE: Exercise = Exercise {
    name: "steal",
    parameters: &["harts", "duration-ms", "sleeps", "give-back", "strict"],
    run,
};

/// Shortest time between two reads of the clock in which a hart was away, in microseconds.
const ABSENCE_US: u64 = 30;
/// Sleeps within which an area must have its value again.
const RESTORING_SLEEPS: usize = 1000;
/// Length of a sleep in microseconds.
const SLEEP_US: u64 = 700;

/// Findings of all harts.
#[derive(Debug, Default)]
struct Found {
    absent: AtomicU64,
    stolen: AtomicU64,
    late: AtomicU64,
    stolen_asleep: AtomicU64,
    /// Times that a neighbour was seen preempted.
    preempted: AtomicU64,
    wrong: AtomicU64,
}

impl Found {
    fn check(&self, passed: bool, what: core::fmt::Arguments<'_>) {
        if !passed && self.wrong.fetch_add(1, Ordering::Relaxed) < 20 {
            say!("steal: {what}");
        }
    }
}

fn set_area(arguments: [u64; 3]) -> i64 {
    let [low, high, flags] = arguments;
    sbi::call(STA, SET_AREA, [low, high, flags, 0, 0, 0]).error
}

/// Stolen nanoseconds as an area says.
fn stolen(area: u64, found: &Found) -> u64 {
    for _ in 0..1000 {
        let before = load32(area + SEQUENCE);
        fence(Ordering::Acquire);
        let steal = load(area + STEAL);
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && load32(area + SEQUENCE) == before {
            return u64::from_le(steal);
        }
    }
    found.check(false, format_args!("the sequence never rests"));
    0
}

/// Tests whether an area says that its hart is preempted.
fn is_preempted(area: u64) -> bool {
    load(area + PREEMPTED) & 0xff != 0
}

/// Calls that must be refused.
fn refusals(area: u64, found: &Found) {
    for (arguments, error) in [
        ([area, 0, 1], INVALID_PARAMETER),
        ([NO_SHARED_MEMORY, NO_SHARED_MEMORY, 2], INVALID_PARAMETER),
        ([area + 8, 0, 0], INVALID_PARAMETER),
        ([area, 1, 0], INVALID_ADDRESS),
        ([board().memory.1, 0, 0], INVALID_ADDRESS),
        ([board().memory.0 - AREA_SIZE, 0, 0], INVALID_ADDRESS),
        ([0, 0, 0], INVALID_ADDRESS),
    ] {
        let answer = set_area(arguments);
        found.check(
            answer == error,
            format_args!("{arguments:x?} should give {error}, gave {answer}"),
        );
    }
    let answer = sbi::call(STA, SET_AREA + 1, [0; 6]).error;
    found.check(
        answer == NOT_SUPPORTED,
        format_args!("function 1: {answer}"),
    );
}

/// Computes for so many ticks. Returns the ticks in which the hart did not.
fn compute(ticks: u64, (area, neighbour): (u64, u64), found: &Found) -> u64 {
    let absence = board().ticks(ABSENCE_US);
    let mut last = csr::time();
    let until = last + ticks;
    let (mut absent, mut seen) = (0, 0);
    while last < until {
        let now = csr::time();
        if now - last > absence {
            absent += now - last;
        }
        last = now;
        seen += u64::from(is_preempted(neighbour));
        found.check(!is_preempted(area), format_args!("preempted while it runs"));
    }
    found.preempted.fetch_add(seen, Ordering::Relaxed);
    absent
}

/// Sleeps so many times. Returns the ticks from each deadline to the end of its sleep.
fn sleep(sleeps: u64) -> u64 {
    let mut late = 0;
    for _ in 0..sleeps {
        let deadline = csr::time() + board().ticks(SLEEP_US);
        while csr::time() < deadline {
            harts::sleep_until(deadline);
        }
        late += csr::time() - deadline;
    }
    late
}

/// Gives the page of an area back to the hypervisor, and the area with it.
fn give_back(area: u64, found: &Found) {
    let mut answer = SUCCESS;
    for _ in 0..2 {
        let page = [area & !(FRAME - 1), FRAME, 0, 0, 0, 0];
        answer = sbi::call(EXTENSION as u64, Function::ReturnPages.id() as u64, page).error;
    }
    found.check(answer == SUCCESS, format_args!("giving back: {answer}"));
}

/// Stolen time once the area has its value again, which was `before` at least: a page that was given back begins with zeros, and the next
/// dispatches write it.
fn restored(area: u64, before: u64, found: &Found) -> u64 {
    for _ in 0..RESTORING_SLEEPS {
        let now = stolen(area, found);
        if now >= before {
            return now;
        }
        let _ = sleep(1);
    }
    found.check(false, format_args!("the area is not written again"));
    before
}

/// The area stays as it is after it was taken away.
fn silence(area: u64, found: &Found) {
    let answer = set_area([NO_SHARED_MEMORY, NO_SHARED_MEMORY, 0]);
    found.check(answer == SUCCESS, format_args!("taking away: {answer}"));
    let words = || (0..AREA_SIZE).step_by(8).map(|offset| area + offset);
    words().for_each(|word| store(word, !word));
    let _ = sleep(4);
    let kept = words().all(|word| load(word) == !word);
    found.check(kept, format_args!("the area was written after its end"));
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let duration = arguments.number("duration-ms", 50, 1, 1 << 32)?;
    let sleeps = arguments.number("sleeps", 30, 0, 1 << 32)?;
    let gives = arguments.choice("give-back", false, &[("no", false), ("yes", true)])?;
    let strict = arguments.number("strict", 1, 0, 1)? == 1;
    if !sbi::probe(STA) {
        say!("steal: there is no accounting");
        return Ok(Verdict::Fail);
    }
    // A page of each hart that nothing has touched: a hypervisor may have no frame for it yet.
    let Some(pages) = frames::take_aligned(MAX_HARTS as u64, FRAME) else {
        crate::start::fail(format_args!("not enough memory for areas"));
    };
    let area_of =
        |index: usize| pages + index as u64 * (FRAME + AREA_SIZE) % (MAX_HARTS as u64 * FRAME);
    let found = Found::default();
    let (board, met) = (board(), core::sync::atomic::AtomicUsize::new(0));
    harts::run(count, &|hart| {
        let area = area_of(hart.index());
        let neighbour = area_of((hart.index() + 1) % count);
        refusals(area, &found);
        let answer = set_area([area, 0, 0]);
        found.check(answer == SUCCESS, format_args!("setting: {answer}"));
        found.check(stolen(area, &found) == 0, format_args!("not zeroed"));
        harts::meet(&met, count);
        let before = stolen(area, &found);
        let absent = compute(board.ticks(duration * 1000), (area, neighbour), &found);
        let middle = stolen(area, &found);
        if gives {
            give_back(area, &found);
        }
        let asleep_from = restored(area, middle, &found);
        let late = sleep(sleeps);
        let after = stolen(area, &found);
        found
            .absent
            .fetch_add(board.nanoseconds(absent), Ordering::Relaxed);
        found.stolen.fetch_add(middle - before, Ordering::Relaxed);
        found
            .late
            .fetch_add(board.nanoseconds(late), Ordering::Relaxed);
        found
            .stolen_asleep
            .fetch_add(after.saturating_sub(asleep_from), Ordering::Relaxed);
        found.check(after >= middle, format_args!("less stolen than before"));
        silence(area, &found);
    });
    Ok(Verdict::of(judge(&found, strict)))
}

/// Compares what was stolen with what the harts saw.
fn judge(found: &Found, strict: bool) -> bool {
    let value = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let (absent, stolen) = (value(&found.absent), value(&found.stolen));
    let (late, stolen_asleep) = (value(&found.late), value(&found.stolen_asleep));
    // What a change of vCPU takes is no part of what was stolen.
    let near = |stolen: u64, seen: u64| {
        stolen <= seen + seen / 50 && (!strict || stolen + seen / 20 >= seen)
    };
    found.check(
        near(stolen, absent) && (!strict || stolen > 0),
        format_args!("{stolen} ns were stolen from harts that were absent for {absent} ns"),
    );
    found.check(
        stolen_asleep <= late + late / 50,
        format_args!("{stolen_asleep} ns were stolen from sleepers that were {late} ns late"),
    );
    let wrong = value(&found.wrong);
    say!(
        "steal absent-ns={absent} stolen-ns={stolen} late-ns={late} stolen-asleep-ns={stolen_asleep} \
         preempted={} wrong={wrong}",
        value(&found.preempted)
    );
    wrong == 0
}
