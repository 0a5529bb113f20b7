//! `pmu`: counters (SBI, "Performance Monitoring Unit Extension") that count what this guest does and nothing else.
//!
//! Every hart counts instructions of a loop whose length is known, several times and each time as long as some slices,
//! so that other guests run in between: what one time more than another counts must be the instructions by which the
//! loop is longer. With `fences=N` (the number of the computer's own event) it counts the loop's fences
//! of translations too, across sleeps, and they must be as many as there were. So must the calls that firmware counts. A counter that passes zero must make its
//! interrupt pending, and one that was not asked for must not be readable.

use core::sync::atomic::{AtomicU64, Ordering};
use riscv::sbi::performance::{
    CONFIGURE, COUNTERS, CYCLES, EVENT_ENTRY_DATA, EVENT_ENTRY_SIZE, EVENT_INFORMATION, FIRMWARE,
    INFORMATION, INFORMATION_CSR, INFORMATION_FIRMWARE, INITIAL_SNAPSHOT, INSTRUCTIONS, RAW,
    READ_FIRMWARE, RESET, SET_SNAPSHOT_AREA, SET_VALUE, SFENCE_VMA_SENT, SNAPSHOT_VALUES, START,
    STOP, TAKE_SNAPSHOT,
};

use exerciser::arguments::Arguments;
use exerciser::instruction::{A1, csr_read};
use exerciser::random::Random;
use riscv::sbi::error::{INVALID_ADDRESS, INVALID_PARAMETER, NO_SHARED_MEMORY, SUCCESS};
use riscv::sbi::{PMU, RFENCE};

use super::hostile::{ILLEGAL, plain_setting, run_word};
use super::{Exercise, Outcome, Verdict};
use crate::arch::memory::{load, store};
use crate::arch::sandbox::Ending;
use crate::arch::{csr, sbi};
use crate::board::board;
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts::{self, Hart};

pub const EXERCISE: Exercise = Exercise {
    name: "pmu",
    parameters: &["harts", "rounds", "turns", "fences", "away-us", "seed"],
    run,
};

/// The extension that tells of counters that have passed zero, and its interrupt.
const OVERFLOW_BITS: &str = "sscofpmf";
const OVERFLOW: u64 = riscv::csr::interrupt::LCOFI;

/// Instructions of a turn of the loop: a fence, a subtraction, a branch.
const TURN: u64 = 3;

/// Counts of all harts together.
#[derive(Debug, Default)]
struct Tally {
    checks: AtomicU64,
    wrong: AtomicU64,
}

impl Tally {
    fn check(&self, hart: &Hart, what: &str, wanted: u64, found: u64) {
        self.checks.fetch_add(1, Ordering::Relaxed);
        if wanted != found && self.wrong.fetch_add(1, Ordering::Relaxed) < 20 {
            let hart = hart.index();
            say!("pmu: hart {hart} {what} should be {wanted:#x} and is {found:#x}");
        }
    }
}

/// Counters of a hart.
#[derive(Debug, Clone, Copy)]
struct Kit {
    /// Its counters, a bit each.
    present: u64,
    /// The raw event of a fence of translations, if it is to be counted.
    fences: Option<u64>,
    turns: u64,
    away: u64,
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let harts = super::harts(arguments)?;
    let rounds = arguments.number("rounds", 10, 1, 1 << 32)?;
    let turns = arguments.number("turns", 300_000, 1, 1 << 40)?;
    let fences = arguments.number("fences", 0, 0, (1 << 48) - 1)?;
    let away = arguments.number("away-us", 1000, 1, 1 << 32)?;
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    if !sbi::probe(PMU) {
        say!("pmu: there are no counters");
        return Ok(Verdict::Fail);
    }
    if harts::open_sandboxes(harts).is_none() {
        crate::start::fail(format_args!("not enough memory for sandboxes"));
    }
    let tally = Tally::default();
    harts::run(harts, &|hart| {
        let kit = Kit {
            present: present(),
            fences: Some(fences).filter(|event| *event != 0),
            turns,
            away,
        };
        let mut random = Random::stream(seed, hart.index() as u64);
        let open = csr::close_interrupts();
        closed(hart, kit, &tally);
        ask_for_events(hart, kit, &tally);
        count_calls(hart, &mut random, &tally);
        use_snapshots(hart, kit, &mut random, &tally);
        for _ in 0..rounds {
            count_instructions(hart, kit, &mut random, &tally);
            if let Some(event) = kit.fences {
                count_fences(hart, kit, event, &mut random, &tally);
            }
            pass_zero(hart, kit, &mut random, &tally);
        }
        closed(hart, kit, &tally);
        if open {
            csr::open_interrupts();
        }
    });
    let wrong = tally.wrong.load(Ordering::Relaxed);
    let checks = tally.checks.load(Ordering::Relaxed);
    say!("pmu checks={checks} wrong={wrong}");
    Ok(Verdict::of(wrong == 0))
}

/// A call of the extension: its error and its value.
fn call(function: u64, [a, b, c, d, e]: [u64; 5]) -> (i64, u64) {
    let answer = sbi::call(PMU, function, [a, b, c, d, e, 0]);
    (answer.error, answer.value)
}

/// The hart's hardware counters, a bit each.
fn present() -> u64 {
    let is_hardware = |counter: &u64| {
        let (error, information) = call(INFORMATION, [*counter, 0, 0, 0, 0]);
        error == 0
            && information & INFORMATION_FIRMWARE == 0
            && information & INFORMATION_CSR == 0xc00 + counter
    };
    let counters = call(COUNTERS, [0; 5]).1.min(64);
    (0..counters)
        .filter(is_hardware)
        .fold(0, |bits, counter| bits | 1 << counter)
}

/// Asks in one call which events can be counted (SBI §11.10), and with lists that must be refused.
fn ask_for_events(hart: &Hart, kit: Kit, tally: &Tally) {
    let Some(page) = frames::take(1) else {
        crate::start::fail(format_args!("not enough memory for a list of events"));
    };
    let known = |event, data, counts| (event, data, Some(counts));
    let events = [
        known(CYCLES, 0, 1),
        known(INSTRUCTIONS, 0, 1),
        known(SFENCE_VMA_SENT, 0, 1),
        // A call that is counted nowhere, and numbers that the specification does not have.
        known(FIRMWARE | 2, 0, 0),
        known(RAW | 1, 0, 0),
        known(0, 0, 0),
        (RAW, kit.fences.unwrap_or(0), kit.fences.map(|_| 1)),
    ];
    let entries = FRAME / EVENT_ENTRY_SIZE;
    let all = || (0..entries).zip(events.iter().cycle());
    for (entry, (event, data, _)) in all() {
        let at = page + entry * EVENT_ENTRY_SIZE;
        // The answer is in the upper half.
        store(at, event | 0xffff_ffff << 32);
        store(at + EVENT_ENTRY_DATA, *data);
    }
    let ask = |arguments: [u64; 4]| {
        let [low, high, count, flags] = arguments;
        call(EVENT_INFORMATION, [low, high, count, flags, 0]).0
    };
    let check = |what, wanted: i64, found: i64| {
        tally.check(hart, what, wanted.cast_unsigned(), found.cast_unsigned());
    };
    check("a list of events", SUCCESS, ask([page, 0, entries, 0]));
    for (entry, (event, _, counts)) in all() {
        let answer = load(page + entry * EVENT_ENTRY_SIZE);
        tally.check(hart, "a listed event", *event, answer & 0xffff_ffff);
        if let Some(counts) = counts {
            tally.check(hart, "an answer for an event", *counts, answer >> 32);
        }
    }
    let end = board().memory.1;
    for (arguments, wanted) in [
        ([page, 0, 1, 1], INVALID_PARAMETER),
        ([page + 8, 0, 1, 0], INVALID_PARAMETER),
        ([page, 1, 1, 0], INVALID_ADDRESS),
        ([end - EVENT_ENTRY_SIZE, 0, 2, 0], INVALID_ADDRESS),
        ([page, 0, u64::MAX / EVENT_ENTRY_SIZE, 0], INVALID_ADDRESS),
        ([page, 0, 1 << 60, 0], INVALID_ADDRESS),
    ] {
        check("a wrong list", wanted, ask(arguments));
    }
    store(page, CYCLES | 1 << 20);
    check("a reserved bit", INVALID_PARAMETER, ask([page, 0, 1, 0]));
}

/// A counter that has been configured for an event.
struct Counter<'a> {
    hart: &'a Hart,
    tally: &'a Tally,
    number: u64,
}

/// Value of a counter when it was stopped.
struct Stopped {
    value: u64,
    passed_zero: bool,
}

impl<'a> Counter<'a> {
    fn new(hart: &'a Hart, kit: Kit, tally: &'a Tally, event: u64, data: u64) -> Self {
        let (error, number) = call(CONFIGURE, [0, kit.present, 0, event, data]);
        tally.check(hart, "configuring a counter", 0, error.cast_unsigned());
        let is_one = number < 32 && kit.present >> number & 1 != 0;
        tally.check(hart, "a counter of those named", 1, u64::from(is_one));
        Self {
            hart,
            tally,
            number: number & 31,
        }
    }

    fn start(&self, value: u64) {
        let error = call(START, [self.number, 1, SET_VALUE, value, 0]).0;
        let (hart, tally) = (self.hart, self.tally);
        tally.check(hart, "starting a counter", 0, error.cast_unsigned());
    }

    /// Counts so many turns of the loop and the code around it: always the same instructions.
    #[inline(never)]
    fn instructions(&self, start: u64, turns: u64) -> u64 {
        self.start(start);
        csr::fence_often(turns);
        self.stop().value.wrapping_sub(start)
    }

    /// Stops it, and looks what it shows.
    fn stop(&self) -> Stopped {
        let error = call(STOP, [self.number, 1, 0, 0, 0]).0;
        // At once, before anything else happens.
        let passed_zero =
            board().has(OVERFLOW_BITS) && csr::counter_overflows() >> self.number & 1 != 0;
        let (hart, tally) = (self.hart, self.tally);
        tally.check(hart, "stopping a counter", 0, error.cast_unsigned());
        let shown = read(self.number);
        tally.check(hart, "a readable counter", 1, u64::from(shown.is_some()));
        Stopped {
            value: shown.unwrap_or(0),
            passed_zero,
        }
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        call(STOP, [self.number, 1, RESET, 0, 0]);
    }
}

/// hpmcounter `number`, where it can be read.
fn read(number: u64) -> Option<u64> {
    let mut setting = plain_setting();
    let ending = run_word(csr_read(0xc00 + number as u16, A1), &mut setting);
    (ending == Ending::Completed).then_some(setting.registers[A1 as usize])
}

/// Every counter that has no event is an illegal instruction.
fn closed(hart: &Hart, kit: Kit, tally: &Tally) {
    for number in 3..32u16 {
        let mut setting = plain_setting();
        let ending = run_word(csr_read(0xc00 + number, A1), &mut setting);
        let is_closed = matches!(ending, Ending::Trapped { cause: ILLEGAL, .. });
        tally.check(hart, "a closed counter", 1, u64::from(is_closed));
    }
    tally.check(hart, "a counter at least", 1, u64::from(kit.present != 0));
}

/// Counts remote fences, by a counter of the firmware's.
fn count_calls(hart: &Hart, random: &mut Random, tally: &Tally) {
    let is_firmware = |counter: &u64| {
        let (error, information) = call(INFORMATION, [*counter, 0, 0, 0, 0]);
        error == 0 && information & INFORMATION_FIRMWARE != 0
    };
    let Some(counter) = (0..call(COUNTERS, [0; 5]).1.min(64)).find(is_firmware) else {
        return tally.check(hart, "a counter of the firmware's", 1, 0);
    };
    let (error, number) = call(CONFIGURE, [counter, 1, 0, SFENCE_VMA_SENT, 0]);
    tally.check(hart, "configuring it", 0, error.cast_unsigned());
    tally.check(hart, "the counter that was named", counter, number);
    let (start, fences) = (random.next(), random.below(100));
    let fence = || sbi::call(RFENCE, 1, [1 << hart.id(), 0, 0, 4096, 0, 0]);
    fence();
    call(START, [number, 1, SET_VALUE, start, 0]);
    for _ in 0..fences {
        fence();
    }
    let (error, value) = call(READ_FIRMWARE, [number, 0, 0, 0, 0]);
    tally.check(hart, "reading it", 0, error.cast_unsigned());
    tally.check(hart, "remote fences", start.wrapping_add(fences), value);
    call(STOP, [number, 1, RESET, 0, 0]);
}

/// Starts a counter from shared memory and stops it to there (SBI §11.9), and asks for areas that must be refused.
fn use_snapshots(hart: &Hart, kit: Kit, random: &mut Random, tally: &Tally) {
    let Some(page) = frames::take(1) else {
        crate::start::fail(format_args!("not enough memory for snapshots"));
    };
    let check = |what, wanted: i64, found: (i64, u64)| {
        tally.check(hart, what, wanted.cast_unsigned(), found.0.cast_unsigned());
    };
    let set = |low, high, flags| call(SET_SNAPSHOT_AREA, [low, high, flags, 0, 0]);
    let counter = Counter::new(hart, kit, tally, INSTRUCTIONS, 0);
    let base = random.below(counter.number + 1);
    let place = counter.number - base;
    let start = || call(START, [base, 1 << place, INITIAL_SNAPSHOT, 0, 0]);
    let stop = || call(STOP, [base, 1 << place, TAKE_SNAPSHOT, 0, 0]);
    check("a start without an area", NO_SHARED_MEMORY, start());
    check("a stop without an area", NO_SHARED_MEMORY, stop());
    for (low, high, flags, wanted) in [
        (page, 0, 1, INVALID_PARAMETER),
        (page + 8, 0, 0, INVALID_PARAMETER),
        (page, 1, 0, INVALID_ADDRESS),
        (board().memory.1, 0, 0, INVALID_ADDRESS),
        (0, 0, 0, INVALID_ADDRESS),
    ] {
        check("a wrong area", wanted, set(low, high, flags));
    }
    check("an area", SUCCESS, set(page, 0, 0));
    let value = page + SNAPSHOT_VALUES + 8 * place;
    // Half of all counts; the counter passes zero in the other half.
    for (first, passes) in [(random.next() >> 1, 0), (100u64.wrapping_neg(), 1)] {
        store(value, first);
        check("a start from a snapshot", SUCCESS, start());
        csr::fence_often(1000);
        check("a stop with a snapshot", SUCCESS, stop());
        let counted = load(value).wrapping_sub(first);
        let is_near = (1000 * TURN..2000 * TURN).contains(&counted);
        tally.check(hart, "a count from a snapshot", 1, u64::from(is_near));
        let shown = read(counter.number).unwrap_or(0);
        tally.check(hart, "a value in a snapshot", shown, load(value));
        let passed = load(page) >> place & 1;
        tally.check(hart, "an overflow in a snapshot", passes, passed);
    }
    csr::clear_pending(OVERFLOW);
    check("no area", SUCCESS, set(u64::MAX, u64::MAX, 0));
    check("a start from no area", NO_SHARED_MEMORY, start());
}

/// Counts the instructions of a short loop and of a long one.
fn count_instructions(hart: &Hart, kit: Kit, random: &mut Random, tally: &Tally) {
    let counter = Counter::new(hart, kit, tally, INSTRUCTIONS, 0);
    let more = random.below(kit.turns);
    let short = counter.instructions(random.next() >> 1, 1);
    let long = counter.instructions(random.next() >> 1, 1 + more);
    tally.check(hart, "instructions", more * TURN, long.wrapping_sub(short));
}

/// Counts fences, and sleeps between them.
fn count_fences(hart: &Hart, kit: Kit, event: u64, random: &mut Random, tally: &Tally) {
    let counter = Counter::new(hart, kit, tally, RAW, event);
    let (before, after) = (random.below(kit.turns), random.below(1000));
    counter.start(0);
    csr::fence_often(1 + before);
    harts::sleep_until(csr::time() + board().ticks(random.below(kit.away)));
    csr::fence_often(1 + after);
    tally.check(hart, "fences", 2 + before + after, counter.stop().value);
}

/// Lets a counter pass zero, or not quite.
fn pass_zero(hart: &Hart, kit: Kit, random: &mut Random, tally: &Tally) {
    if !board().has(OVERFLOW_BITS) {
        return;
    }
    let counter = Counter::new(hart, kit, tally, INSTRUCTIONS, 0);
    for passes in [false, true] {
        csr::clear_pending(OVERFLOW);
        let turns = 1 + random.below(kit.turns);
        // Somewhere in the loop, or long after it.
        let distance = if passes {
            random.below(turns * TURN)
        } else {
            1 << 62
        };
        counter.start((1 + distance).wrapping_neg());
        csr::fence_often(turns);
        let stopped = counter.stop();
        tally.check(
            hart,
            "zero passed",
            u64::from(passes),
            u64::from(stopped.passed_zero),
        );
        let pending = csr::pending() & OVERFLOW != 0;
        tally.check(hart, "the interrupt", u64::from(passes), u64::from(pending));
    }
    csr::clear_pending(OVERFLOW);
}
