//! `triggers`: debug triggers (SBI, "Debug Triggers Extension") are each hart's own, beside harts of other guests that use the same addresses.
//!
//! With `watch=yes` each hart watches the stores to a word, and each store there must be a breakpoint. With `watch=no` the same stores to the same
//! address must never be one. A dispatch that leaves the triggers of another guest on a hart, or forgets the hart's own, is seen by one of the two.

use core::sync::atomic::{AtomicU64, Ordering};

use exerciser::arguments::Arguments;
use exerciser::instruction::A0;
use riscv::csr::trigger::{LOAD, M, MATCH6, OUTSIDE, S, STORE, TYPE_SHIFT, VS};
use riscv::exception::BREAKPOINT;
use riscv::sbi::debug_triggers::{
    COUNT, DISABLE, ENABLE, INSTALL, MAPPED, READ, SET_SHARED_MEMORY, STATE_S, UNINSTALL, UPDATE,
};
use riscv::sbi::error::{
    BAD_RANGE, FAILED, INVALID_ADDRESS, INVALID_PARAMETER, NO_SHARED_MEMORY, NOT_SUPPORTED, SUCCESS,
};
use riscv::sbi::{DBTR, NO_SHARED_MEMORY as NO_AREA};

use super::hostile::{plain_setting, run_word};
use super::{Exercise, Outcome, Verdict};
use crate::arch::memory::{load, store};
use crate::arch::sandbox::Ending;
use crate::arch::{csr, sbi};
use crate::board::board;
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts::{self, Hart};

pub const EXERCISE: Exercise = Exercise {
    name: "triggers",
    parameters: &["harts", "watch", "duration-ms"],
    run,
};

/// SD a1, 0(a0) and LD a1, 0(a0).
const STORE_WORD: u32 = 0x00b5_3023;
const LOAD_WORD: u32 = 0x0005_3583;
const TYPE: u64 = MATCH6 << TYPE_SHIFT;
const WATCHED: u64 = TYPE | S | STORE;

/// Counts of all harts.
#[derive(Debug, Default)]
struct Found {
    stores: AtomicU64,
    wrong: AtomicU64,
}

impl Found {
    fn check(&self, passed: bool, what: core::fmt::Arguments<'_>) {
        if !passed && self.wrong.fetch_add(1, Ordering::Relaxed) < 20 {
            say!("triggers: {what}");
        }
    }

    /// Makes a call whose answer is known.
    fn call(&self, function: u64, arguments: [u64; 3], error: i64) -> u64 {
        let [first, second, third] = arguments;
        let answer = sbi::call(DBTR, function, [first, second, third, 0, 0, 0]);
        self.check(
            answer.error == error,
            format_args!("{function} {arguments:x?}: {}, not {error}", answer.error),
        );
        answer.value
    }

    /// Executes a store to an address, which must be a breakpoint or not.
    fn store(&self, address: u64, is_breakpoint: bool) {
        let ending = execute(STORE_WORD, address);
        let expected = match is_breakpoint {
            true => {
                matches!(ending, Ending::Trapped { cause: BREAKPOINT, value, .. } if value == address)
            }
            false => ending == Ending::Completed,
        };
        self.check(
            expected,
            format_args!("store to {address:#x}: {ending:x?}, breakpoint {is_breakpoint}"),
        );
        self.stores.fetch_add(1, Ordering::Relaxed);
    }
}

fn execute(word: u32, address: u64) -> Ending {
    let mut setting = plain_setting();
    setting.registers[A0 as usize] = address;
    run_word(word, &mut setting)
}

fn configure(area: u64, entry: u64, words: [u64; 4]) {
    for (place, word) in (0..).zip(words) {
        store(area + 32 * entry + 8 * place, word);
    }
}

/// Calls that must be refused, of a hart without triggers and without an area.
fn refusals(area: u64, word: u64, found: &Found) {
    let count = found.call(COUNT, [0, 0, 0], SUCCESS);
    found.check(
        found.call(COUNT, [WATCHED, 0, 0], SUCCESS) == count,
        format_args!("other numbers of triggers"),
    );
    found.check(
        found.call(COUNT, [15 << TYPE_SHIFT, 0, 0], SUCCESS) == 0,
        format_args!("triggers of no type"),
    );
    found.call(INSTALL, [1, 0, 0], NO_SHARED_MEMORY);
    found.call(READ, [0, 1, 0], NO_SHARED_MEMORY);
    found.call(SET_SHARED_MEMORY, [area, 0, 1], INVALID_PARAMETER);
    found.call(SET_SHARED_MEMORY, [area + 4, 0, 0], INVALID_PARAMETER);
    found.call(SET_SHARED_MEMORY, [area, 1, 0], INVALID_ADDRESS);
    found.call(SET_SHARED_MEMORY, [0, 0, 0], INVALID_ADDRESS);
    found.call(SET_SHARED_MEMORY, [area, 0, 0], SUCCESS);
    for (control, error) in [
        (WATCHED | M, INVALID_PARAMETER),
        (WATCHED | OUTSIDE, INVALID_PARAMETER),
        (WATCHED | VS, NOT_SUPPORTED),
        // A chain, and an action that is no breakpoint.
        (WATCHED | 1 << 11, NOT_SUPPORTED),
        (WATCHED | 1 << 12, NOT_SUPPORTED),
        (15 << TYPE_SHIFT, FAILED),
    ] {
        configure(area, 0, [0, control, word, 0]);
        found.call(INSTALL, [1, 0, 0], error);
    }
    for count in [count + 1, u64::MAX] {
        found.call(INSTALL, [count, 0, 0], BAD_RANGE);
        found.call(UPDATE, [count, 0, 0], BAD_RANGE);
        found.call(READ, [0, count, 0], BAD_RANGE);
        found.call(UNINSTALL, [count, 1, 0], INVALID_PARAMETER);
    }
    found.call(UNINSTALL, [0, 1, 0], INVALID_PARAMETER);
    found.call(8, [0, 0, 0], NOT_SUPPORTED);
}

/// Rounds of a hart that watches, however slow the computer is.
const LEAST_ROUNDS: u32 = 3;

/// Watches stores to the word until the time, with changes in between.
fn watch(area: u64, word: u64, until: u64, found: &Found) {
    refusals(area, word, found);
    let mut rounds = 0;
    while csr::time() < until || rounds < LEAST_ROUNDS {
        configure(area, 0, [u64::MAX, WATCHED, word, 0]);
        found.call(INSTALL, [1, 0, 0], SUCCESS);
        found.check(load(area) == 0, format_args!("number {:#x}", load(area)));
        found.store(word, true);
        found.store(word + 64, false);
        let loaded = execute(LOAD_WORD, word);
        found.check(
            loaded == Ending::Completed,
            format_args!("load: {loaded:x?}"),
        );
        found.call(READ, [0, 1, 0], SUCCESS);
        let read = [0, 8, 16, 24].map(|offset| load(area + offset));
        found.check(
            read == [MAPPED | STATE_S, WATCHED, word, 0],
            format_args!("read {read:x?}"),
        );
        for _ in 0..20 {
            found.store(word, true);
        }
        found.call(DISABLE, [0, 1, 0], SUCCESS);
        found.store(word, false);
        found.call(ENABLE, [0, 1, 0], SUCCESS);
        found.store(word, true);
        configure(area, 0, [0, TYPE | S | LOAD, word, 0]);
        found.call(UPDATE, [1, 0, 0], SUCCESS);
        found.store(word, false);
        let loaded = execute(LOAD_WORD, word);
        found.check(
            matches!(
                loaded,
                Ending::Trapped {
                    cause: BREAKPOINT,
                    ..
                }
            ),
            format_args!("load: {loaded:x?}"),
        );
        found.call(UNINSTALL, [0, 1, 0], SUCCESS);
        found.store(word, false);
        rounds += 1;
    }
    found.call(SET_SHARED_MEMORY, [NO_AREA, NO_AREA, 0], SUCCESS);
    found.call(INSTALL, [1, 0, 0], NO_SHARED_MEMORY);
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let watches = arguments.choice("watch", true, &[("no", false), ("yes", true)])?;
    let duration = arguments.number("duration-ms", 30, 1, 1 << 32)?;
    if watches && !sbi::probe(DBTR) {
        say!("triggers: there are none");
        return Ok(Verdict::Fail);
    }
    // The word first, so that it has the same address in all guests.
    let word = frames::take(1);
    let areas = frames::take(count as u64);
    let (Some(word), Some(areas)) = (word, areas) else {
        crate::start::fail(format_args!("memory is out"));
    };
    if harts::open_sandboxes(count).is_none() {
        crate::start::fail(format_args!("not enough memory for sandboxes"));
    }
    let until = csr::time() + board().ticks(duration * 1000);
    let found = Found::default();
    harts::run(count, &|hart: &Hart| {
        if watches {
            let area = areas + FRAME * hart.index() as u64;
            return watch(area, word, until, &found);
        }
        while csr::time() < until {
            found.store(word, false);
        }
    });
    let wrong = found.wrong.into_inner();
    let stores = found.stores.into_inner();
    say!("triggers watch={watches} stores={stores} wrong={wrong}");
    Ok(Verdict::of(wrong == 0))
}
