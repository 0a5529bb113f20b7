//! `sleep`: the computer is suspended to RAM (SBI, "System Suspend Extension") and wakes by its timer, by a message that
//! was there before, and with `disk=yes` by a read that ends meanwhile.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use exerciser::arguments::Arguments;
use exerciser::workload::Trigger;
use riscv::sbi::SUSP;
use riscv::sbi::error::{DENIED, INVALID_ADDRESS, INVALID_PARAMETER, NOT_SUPPORTED};
use riscv::sbi::suspend::{SUSPEND_TO_RAM, SYSTEM_SUSPEND};

use super::{Exercise, Outcome, Verdict};
use crate::arch::suspend::{Resumed, suspend};
use crate::arch::{csr, imsic, sbi, team};
use crate::block::Disk;
use crate::board::board;
use crate::console::say;
use crate::harts;
use crate::interrupts::{BLOCK, WAKE};

pub const EXERCISE: Exercise = Exercise {
    name: "sleep",
    parameters: &["harts", "rounds", "length-us", "disk"],
    run,
};

/// Counts what is wrong.
#[derive(Debug, Default)]
struct Tally {
    wrong: u64,
}

impl Tally {
    fn check(&mut self, passed: bool, what: core::fmt::Arguments<'_>) {
        if !passed {
            self.wrong += 1;
            say!("sleep: {what}");
        }
    }
}

/// Calls that must be refused, whatever the other harts do.
fn refusals(tally: &mut Tally) {
    let (begin, end) = board().memory;
    for (function, kind, address, error) in [
        (SYSTEM_SUSPEND + 1, SUSPEND_TO_RAM, begin, NOT_SUPPORTED),
        (SYSTEM_SUSPEND, 1, begin, INVALID_PARAMETER),
        (SYSTEM_SUSPEND, 0x8000_0000, begin, INVALID_PARAMETER),
        (SYSTEM_SUSPEND, SUSPEND_TO_RAM, end, INVALID_ADDRESS),
        (SYSTEM_SUSPEND, SUSPEND_TO_RAM, u64::MAX, INVALID_ADDRESS),
    ] {
        let answer = sbi::call(SUSP, function, [kind, address, 0, 0, 0, 0]).error;
        tally.check(
            answer == error,
            format_args!("{function} {kind:#x} {address:#x}: {answer}, not {error}"),
        );
    }
}

/// Suspends the computer with the timer at `deadline`, and checks how it resumes.
fn resumes(tally: &mut Tally, deadline: u64, what: &str) {
    harts::set_timer(deadline);
    csr::set_interrupt_enables(csr::TIMER | csr::EXTERNAL);
    let outcome = suspend();
    csr::set_interrupt_enables(0);
    let hart = team::current().id();
    let right = Resumed {
        hart,
        satp: 0,
        open: false,
    };
    tally.check(
        outcome == Ok(right),
        format_args!("{what}: {outcome:x?} instead of hart {hart}"),
    );
}

/// Suspends the computer while the disk reads, with the timer far away. The disk's interrupt ends the suspension.
fn wake_by_disk(tally: &mut Tally, disk: &Disk, round: u64, length: u64) {
    let begin = csr::time();
    let limit = begin + 100 * length;
    tally.check(disk.read(0, 8 * round, 8), format_args!("no read"));
    resumes(tally, limit, "by the disk");
    tally.check(csr::time() < limit, format_args!("slept over the disk"));
    csr::set_interrupt_enables(csr::EXTERNAL);
    csr::take_interrupts();
    let mut done = 0;
    disk.collect(team::current().taken(BLOCK), |_| done += 1);
    tally.check(done == 1, format_args!("{done} reads are done"));
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let rounds = arguments.number("rounds", 10, 1, 1 << 32)?;
    let length = board().ticks(arguments.number("length-us", 3000, 1, 1 << 32)?);
    if !sbi::probe(SUSP) {
        say!("sleep: the computer cannot be suspended");
        return Ok(Verdict::Fail);
    }
    let disk = match arguments.choice("disk", false, &[("no", false), ("yes", true)])? {
        false => None,
        true => match Disk::find(Trigger::Level, false, false) {
            Ok(disk) => Some(disk),
            Err(why) => {
                say!("sleep: {why}");
                return Ok(Verdict::Fail);
            }
        },
    };
    if let Some(disk) = &disk {
        disk.route(team::current(), BLOCK);
    }
    let mut tally = Tally::default();
    refusals(&mut tally);
    let mut latest = 0;
    for round in 0..rounds {
        if let Some(disk) = &disk {
            wake_by_disk(&mut tally, disk, round, length);
        }
        let deadline = csr::time() + length;
        resumes(&mut tally, deadline, "by the timer");
        let now = csr::time();
        tally.check(
            now >= deadline,
            format_args!("{} ticks early", deadline - now.min(deadline)),
        );
        latest = latest.max(now.saturating_sub(deadline));
        // A message that is there ends the suspension at once.
        let own = team::current();
        if own.page() != 0 {
            let limit = csr::time() + 100 * length;
            imsic::send(own.page(), WAKE);
            resumes(&mut tally, limit, "by a message");
            tally.check(csr::time() < limit, format_args!("slept over a message"));
            csr::set_interrupt_enables(csr::EXTERNAL);
            csr::take_interrupts();
        }
    }
    harts::set_timer(u64::MAX);
    if count > 1 {
        let (met, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let denied = AtomicU64::new(0);
        harts::run(count, &|hart| {
            harts::meet(&met, count);
            if hart.index() == 0 {
                denied.store(
                    suspend().map_or_else(i64::cast_unsigned, |_| 0),
                    Ordering::Release,
                );
            }
            harts::meet(&over, count);
        });
        let answer = denied.load(Ordering::Acquire).cast_signed();
        tally.check(answer == DENIED, format_args!("with siblings: {answer}"));
        // They have stopped again, and may be started after a suspension.
        resumes(&mut tally, csr::time() + length, "after siblings");
        harts::run(count, &|_| {});
    }
    say!(
        "sleep rounds={rounds} latest-ns={} wrong={}",
        board().nanoseconds(latest),
        tally.wrong
    );
    Ok(Verdict::of(tally.wrong == 0))
}
