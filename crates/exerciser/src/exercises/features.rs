//! `features`: firmware features (SBI, "SBI Firmware Features Extension") are each hart's own, beside harts of other guests that have set others.
//!
//! With `masks=7` or `masks=16` each hart switches pointer masking on and loads by addresses with that many bits of a tag; with `masks=0` such loads
//! must fault. A dispatch that leaves the masking of another guest on a hart is seen by one of the two. Where the harts have shadow stacks, each hart
//! keeps a value in ssp of its own too.

use core::sync::atomic::{AtomicU64, Ordering};

use exerciser::arguments::Arguments;
use exerciser::instruction::{A0, csr_read, csr_write};
use riscv::csr::number;
use riscv::sbi::FWFT;
use riscv::sbi::error::{DENIED, INVALID_PARAMETER, NOT_SUPPORTED, SUCCESS};
use riscv::sbi::firmware_features::{DOUBLE_TRAP, GET, POINTER_MASKING_PMLEN, SET, SHADOW_STACK};

use super::hostile::{plain_setting, run_word};
use super::{Exercise, Outcome, Verdict};
use crate::arch::memory::store;
use crate::arch::sandbox::Ending;
use crate::arch::{csr, sbi};
use crate::board::board;
use crate::console::say;
use crate::frames;
use crate::harts;

pub const EXERCISE: Exercise = Exercise {
    name: "features",
    parameters: &["harts", "masks", "duration-ms"],
    run,
};

/// LD a0, 0(a0).
const LOAD: u32 = 0x0005_3503;
const VALUE: u64 = 0x0123_4567_89ab_cdef;

/// Counts of all harts.
#[derive(Debug, Default)]
struct Found {
    loads: AtomicU64,
    shadow_stacks: AtomicU64,
    wrong: AtomicU64,
}

impl Found {
    fn check(&self, passed: bool, what: core::fmt::Arguments<'_>) {
        if !passed && self.wrong.fetch_add(1, Ordering::Relaxed) < 20 {
            say!("features: {what}");
        }
    }
}

fn set(feature: u64, value: u64, flags: u64) -> i64 {
    sbi::call(FWFT, SET, [feature, value, flags, 0, 0, 0]).error
}

/// Tests whether the harts have an extension.
fn has(name: &str) -> bool {
    board().isa.split('_').any(|other| other == name)
}

/// Value that this hart keeps in ssp, if it has shadow stacks.
#[derive(Debug, Default)]
struct ShadowStack(Option<u64>);

impl ShadowStack {
    /// Switches shadow stacks on, where the harts have them. ssp is zero then.
    fn begin(found: &Found) -> Self {
        if !has("zicfiss") {
            return Self(None);
        }
        let answer = set(SHADOW_STACK, 1, 0);
        found.check(answer == SUCCESS, format_args!("shadow stacks: {answer}"));
        Self(Some(0))
    }

    /// Compares ssp with what it must be, and writes another value.
    fn check(&mut self, next: u64, found: &Found) {
        let Some(expected) = &mut self.0 else {
            return;
        };
        let mut setting = plain_setting();
        let read = run_word(csr_read(number::SSP, A0), &mut setting);
        let shown = setting.registers[A0 as usize];
        found.check(
            read == Ending::Completed && shown == *expected,
            format_args!("ssp {shown:#x}, not {expected:#x}: {read:x?}"),
        );
        setting.registers[A0 as usize] = next;
        let written = run_word(csr_write(number::SSP, A0), &mut setting);
        found.check(written == Ending::Completed, format_args!("{written:x?}"));
        found.shadow_stacks.fetch_add(1, Ordering::Relaxed);
        *expected = next;
    }
}

/// Calls that must be refused.
fn refusals(found: &Found) {
    let refused_trap = match has("ssdbltrp") {
        true => INVALID_PARAMETER,
        false => NOT_SUPPORTED,
    };
    for (feature, value, flags, error) in [
        (DOUBLE_TRAP, 2, 0, refused_trap),
        (POINTER_MASKING_PMLEN + 1, 1, 0, DENIED),
        (0x8000_0000, 0, 0, DENIED),
        (POINTER_MASKING_PMLEN, 9, 0, INVALID_PARAMETER),
        (POINTER_MASKING_PMLEN, 7, 2, INVALID_PARAMETER),
    ] {
        let answer = set(feature, value, flags);
        found.check(
            answer == error,
            format_args!("{feature:#x} {value} {flags}: {answer}, not {error}"),
        );
    }
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let masks = arguments.choice("masks", 7, &[("0", 0), ("7", 7), ("16", 16)])?;
    let duration = arguments.number("duration-ms", 30, 1, 1 << 32)?;
    if !has("ssnpm") || !sbi::probe(FWFT) {
        say!("features: there is no pointer masking");
        return Ok(Verdict::Fail);
    }
    let word = frames::take(1);
    if word.is_none() || harts::open_sandboxes(count).is_none() {
        crate::start::fail(format_args!("not enough memory for sandboxes"));
    }
    let word = word.unwrap_or_default();
    store(word, VALUE);
    let until = csr::time() + board().ticks(duration * 1000);
    let found = Found::default();
    harts::run(count, &|_| {
        refusals(&found);
        let answer = set(POINTER_MASKING_PMLEN, masks, 0);
        found.check(answer == SUCCESS, format_args!("masking: {answer}"));
        let mut shadow_stack = ShadowStack::begin(&found);
        let mut tag = 1;
        let mut loads = 0;
        while csr::time() < until {
            let mut setting = plain_setting();
            // Tags of 7 bits, whatever is masked, so that the same loads fault or do not.
            setting.registers[A0 as usize] = word | tag << 57;
            let ending = run_word(LOAD, &mut setting);
            let loaded = ending == Ending::Completed && setting.registers[A0 as usize] == VALUE;
            let faulted = matches!(ending, Ending::Trapped { .. });
            let passed = if masks == 0 { faulted } else { loaded };
            found.check(
                passed,
                format_args!("masks={masks} tag={tag:#x}: {ending:x?}"),
            );
            // Addresses of shadow stacks are multiples of eight.
            shadow_stack.check(word ^ tag << 12, &found);
            tag = tag % 127 + 1;
            loads += 1;
        }
        let value = sbi::call(FWFT, GET, [POINTER_MASKING_PMLEN, 0, 0, 0, 0, 0]).value;
        found.check(value == masks, format_args!("masks {value}, not {masks}"));
        let answer = set(POINTER_MASKING_PMLEN, 0, 0);
        found.check(answer == SUCCESS, format_args!("masking off: {answer}"));
        found.loads.fetch_add(loads, Ordering::Relaxed);
    });
    let wrong = found.wrong.into_inner();
    let (loads, stacks) = (found.loads.into_inner(), found.shadow_stacks.into_inner());
    say!("features loads={loads} shadow-stacks={stacks} wrong={wrong}");
    Ok(Verdict::of(wrong == 0))
}
