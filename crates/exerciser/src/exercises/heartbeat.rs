//! `heartbeat`: the VM that must keep going while another is hostile.
//!
//! Every hart sleeps from beat to beat and checks part of its own memory after each; the first hart prints
//! a line a beat. It fails where a word of its memory is not what it wrote, or where `gap-limit-ms` is
//! given and a beat came later than that.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use exerciser::arguments::Arguments;
use exerciser::pattern::Pattern;

use super::{Exercise, Outcome, Verdict};
use crate::arch::{csr, memory, sbi};
use crate::board::board;
use crate::console::{self, say};
use crate::{frames, harts};

pub const EXERCISE: Exercise = Exercise {
    name: "heartbeat",
    parameters: &[
        "harts",
        "period-ms",
        "duration-ms",
        "memory-kib",
        "gap-limit-ms",
    ],
    run,
};

/// Words that a hart checks after each beat: bounded, so that the check itself is short.
const WORDS_A_BEAT: u64 = 16 * 1024;

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let period = arguments.number("period-ms", 100, 1, 60_000)?;
    let duration = arguments.number("duration-ms", 5000, 0, 1 << 40)?;
    let memory_kib = arguments.number("memory-kib", 1024, 4, 1 << 22)?;
    let limit = arguments.number("gap-limit-ms", 0, 0, 1 << 32)?;
    let (board, frames_each) = (board(), memory_kib.div_ceil(4));
    let mut regions = [0; crate::board::MAX_HARTS];
    for region in regions.iter_mut().take(count) {
        match frames::take_aligned(frames_each, frames::FRAME) {
            Some(start) => *region = start,
            None => crate::start::fail(format_args!(
                "memory-kib={memory_kib} for each of {count} harts does not fit"
            )),
        }
    }
    let (disturbed, checked, largest_gap) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let tells = super::work::has_vendor_calls();
    let (period_ticks, start) = (board.ticks(period * 1000), csr::time());
    harts::run(count, &|hart| {
        let region = regions.get(hart.index()).copied().unwrap_or(0);
        let words = frames_each * frames::FRAME / 8;
        let pattern = Pattern::new(hart.index() as u64 + 1);
        for word in 0..words {
            memory::store(region + 8 * word, pattern.word(region + 8 * word));
        }
        let (mut beat, mut next) = (0u64, 0u64);
        while !stop.load(Ordering::Relaxed) {
            beat += 1;
            let deadline = start + beat * period_ticks;
            while csr::time() < deadline {
                harts::sleep_until(deadline);
            }
            let now = csr::time();
            let gap = now - deadline;
            largest_gap.fetch_max(gap, Ordering::Relaxed);
            for _ in 0..words.min(WORDS_A_BEAT) {
                let address = region + 8 * next;
                if memory::load(address) != pattern.word(address) {
                    disturbed.fetch_add(1, Ordering::Relaxed);
                    say!(
                        "hart {} word {address:#x} is {:#x}",
                        hart.index(),
                        memory::load(address)
                    );
                }
                next = (next + 1) % words;
            }
            checked.fetch_add(words.min(WORDS_A_BEAT), Ordering::Relaxed);
            // Beats that were missed altogether are skipped, not made up for.
            beat += (csr::time() - deadline) / period_ticks;
            if hart.index() == 0 {
                if tells {
                    let function = abi::sbi::Function::Heartbeat.id() as u64;
                    sbi::call(abi::sbi::EXTENSION as u64, function, [beat, 0, 0, 0, 0, 0]);
                }
                say!(
                    "heartbeat {beat} uptime-ms={} gap-us={} largest-gap-us={} checked-words={} disturbed={}",
                    board.nanoseconds(now - start) / 1_000_000,
                    board.nanoseconds(gap) / 1000,
                    board.nanoseconds(largest_gap.load(Ordering::Relaxed)) / 1000,
                    checked.load(Ordering::Relaxed),
                    disturbed.load(Ordering::Relaxed),
                );
                let over = duration != 0 && now - start >= board.ticks(duration * 1000);
                if over || console::read() == Some(b'q') {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    let gap_us = board.nanoseconds(largest_gap.load(Ordering::Relaxed)) / 1000;
    let disturbed = disturbed.load(Ordering::Relaxed);
    say!(
        "heartbeat over: largest-gap-us={gap_us} checked-words={} disturbed={disturbed}",
        checked.load(Ordering::Relaxed),
    );
    Ok(Verdict::of(
        disturbed == 0 && (limit == 0 || gap_us <= limit * 1000),
    ))
}
