//! `state`: what a hart holds must still be there after it was away: floating-point registers under each
//! `sstatus.FS`, vector registers under each `sstatus.VS`, supervisor registers, and its interrupt file, pending bits that are not enabled included.
//!
//! A vCPU is away when it sleeps, spins longer than a slice, stops, or calls the hypervisor. Several VMs that
//! run this at once on few harts see each other's registers where a switch forgets one.

mod vectors;

use core::sync::atomic::{AtomicU64, Ordering};

use exerciser::arguments::Arguments;
use exerciser::random::Random;
use riscv::sbi::reset::WARM_REBOOT;

use super::{Exercise, Outcome, Verdict};
use crate::arch::{csr, imsic, memory, sbi, state};
use crate::board::board;
use crate::console::say;
use crate::frames;
use crate::harts::{self, Hart};

pub const EXERCISE: Exercise = Exercise {
    name: "state",
    parameters: &[
        "harts",
        "rounds",
        "seed",
        "away-us",
        "strict",
        "clock-ticks",
        "vectors-one-in",
        "starts",
    ],
    run,
};

/// The identities whose pending bits are watched: the upper half of what every file has.
const WATCHED: u64 = 0xffff_ffff_0000_0000;

/// How long an interrupt may take that is pending and has just been enabled: far longer than any does.
const LATEST_US: u64 = 2_000_000;

/// Counts of all harts together.
#[derive(Debug)]
struct Tally {
    checks: AtomicU64,
    lost: AtomicU64,
    late: AtomicU64,
    /// The latest time that any hart has read.
    latest: AtomicU64,
    /// Ticks that a hart's clock may be behind another's.
    clock_ticks: u64,
}

impl Tally {
    fn check(&self, hart: &Hart, what: &str, wanted: u64, found: u64) {
        self.checks.fetch_add(1, Ordering::Relaxed);
        if wanted != found && self.lost.fetch_add(1, Ordering::Relaxed) < 20 {
            say!(
                "state: hart {} {what} was {wanted:#x} and is {found:#x}",
                hart.index()
            );
        }
    }
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let harts = super::harts(arguments)?;
    let rounds = arguments.number("rounds", 300, 1, 1 << 40)?;
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let strict = arguments.number("strict", 0, 0, 1)? == 1;
    let away = arguments.number("away-us", 2000, 1, 1 << 32)?;
    let starts = arguments.number("starts", 1, 1, 1 << 20)?;
    let vectors_one_in = arguments.number("vectors-one-in", 2, 0, 1 << 20)?;
    let tally = Tally {
        checks: AtomicU64::new(0),
        lost: AtomicU64::new(0),
        late: AtomicU64::new(0),
        latest: AtomicU64::new(0),
        clock_ticks: arguments.number("clock-ticks", 1, 0, 1 << 32)?,
    };
    harts::run(harts, &|hart| {
        let mut random = Random::stream(seed, hart.index() as u64);
        let has_vectors = vectors_one_in != 0 && vectors::are_here();
        if has_vectors {
            vectors::check_unused(hart, &tally);
        }
        for _ in 0..rounds {
            // Drawn only where there are vectors: a seed means the same rounds elsewhere.
            let held = (has_vectors && random.below(vectors_one_in) == 0)
                .then(|| vectors::Held::fill(&mut random));
            round(hart, &mut random, away, &tally);
            if let Some(held) = held {
                held.check(hart, &tally);
            }
        }
        state::set_floating_point_status(3);
        crate::interrupts::open();
    });
    let lost = tally.lost.load(Ordering::Relaxed);
    let late = tally.late.load(Ordering::Relaxed);
    say!(
        "state checks={} late={late} lost={lost}",
        tally.checks.load(Ordering::Relaxed)
    );
    let passed = lost == 0 && (late == 0 || !strict);
    if passed && starts > 1 && this_start() < starts {
        let answer = sbi::reset(WARM_REBOOT);
        say!("state: reboot refused: error {}", answer.error);
        return Ok(Verdict::Fail);
    }
    Ok(Verdict::of(passed))
}

/// Counts how often this computer has started, in memory that nobody uses and that a warm reboot keeps.
fn this_start() -> u64 {
    let Some(frame) = frames::take_aligned(1, frames::FRAME) else {
        return u64::MAX;
    };
    let start = memory::load(frame) + 1;
    memory::store(frame, start);
    start
}

fn round(hart: &Hart, random: &mut Random, away: u64, tally: &Tally) {
    let floating: [u64; 32] = core::array::from_fn(|_| random.next());
    // Flags and rounding mode: five bits and the valid modes.
    let control = random.below(32) | random.below(5) << 5;
    state::set_floating_point_status(3);
    state::load_floating_point(&floating, control);
    // Off, Initial and Clean are what the guest says of its own copy; the registers stay.
    state::set_floating_point_status(random.below(4));
    let pending = if hart.page() == 0 {
        0
    } else {
        set_pending(hart, random)
    };
    let has_sstc = crate::interrupts::has_sstc();
    // Without Sstc the last is not there, without the AIA the last two.
    let kinds = match (has_sstc, hart.page() != 0) {
        (true, true) => state::KEPT.len(),
        (false, true) => state::KEPT.len() - 1,
        _ => state::KEPT.len() - 2,
    };
    let sleeps = random.below(4);
    let mut kept = [0; state::KEPT.len()];
    for (number, value) in kept.iter_mut().enumerate().take(kinds) {
        *value = state::set_kept(number, random.next());
    }
    match sleeps {
        0 => {
            // The sleep sets the timer itself, and so does the wait.
            harts::sleep_until(csr::time() + board().ticks(random.below(away)));
            kept[4] = state::kept_after_sleep(has_sstc);
        }
        1 => {
            let end = csr::time() + board().ticks(random.below(away));
            while csr::time() < end {
                csr::pause();
            }
        }
        2 => {
            if board().has("zawrs") {
                for _ in 0..2 {
                    harts::wait_on_reservation_until(
                        csr::time() + board().ticks(random.below(away) / 2),
                    );
                }
                kept[4] = state::kept_after_sleep(has_sstc);
            }
        }
        _ => {
            sbi::probe(riscv::sbi::BASE);
        }
    }
    let seen = tally.latest.load(Ordering::Acquire);
    let now = csr::time();
    // Clocks of harts may differ by a tick (unprivileged specification, "Zicntr").
    let is_behind = seen.saturating_sub(now) > tally.clock_ticks;
    tally.check(hart, "time that is behind others'", 0, u64::from(is_behind));
    tally.latest.fetch_max(now, Ordering::AcqRel);
    for (number, wanted) in kept.into_iter().enumerate().take(kinds) {
        tally.check(hart, state::KEPT[number], wanted, state::kept(number));
    }
    state::set_floating_point_status(3);
    let mut found = [0; 32];
    let found_control = state::store_floating_point(&mut found);
    tally.check(hart, "fcsr", control, found_control);
    for (wanted, found) in floating.into_iter().zip(found) {
        tally.check(hart, "a floating-point register", wanted, found);
    }
    if hart.page() != 0 {
        settle(hart, pending, tally);
        tally.check(
            hart,
            "the file's enabled bits",
            !WATCHED & !1,
            imsic::enabled() & !1,
        );
    }
    harts::set_timer(u64::MAX);
    if hart.page() != 0 {
        unmask(hart, pending, tally);
    }
}

/// Checks that what was pending is. What shows again only after a while is counted as late: a file that
/// follows its hart with a delay loses nothing, but a guest that polls may see it.
fn settle(hart: &Hart, pending: u64, tally: &Tally) {
    let found = || imsic::pending() & WATCHED;
    if found() != pending {
        tally.late.fetch_add(1, Ordering::Relaxed);
        let end = csr::time() + board().ticks(LATEST_US);
        harts::wait_until(|| csr::time() >= end || found() == pending);
    }
    tally.check(hart, "the file's pending bits", pending, found());
}

/// Enables the watched identities: each that was sent while masked must come now.
fn unmask(hart: &Hart, pending: u64, tally: &Tally) {
    let sent = || (32..64u64).filter(|identity| pending >> identity & 1 == 1);
    let mut before = [0; crate::interrupts::IDENTITIES];
    for (identity, count) in (0..).zip(&mut before) {
        *count = hart.taken(identity);
    }
    let has_come = |identity: u64| hart.taken(identity) != before[identity as usize];
    imsic::set_enabled(u64::MAX);
    // Twice: a computer that itself stood still for the whole of the first time has lost nothing.
    for _ in 0..2 {
        let end = csr::time() + board().ticks(LATEST_US);
        harts::wait_until(|| csr::time() >= end || sent().all(has_come));
    }
    for identity in sent() {
        tally.check(
            hart,
            "an interrupt that was masked when it came",
            identity,
            if has_come(identity) { identity } else { 0 },
        );
    }
    harts::set_timer(u64::MAX);
}

/// Makes some of the watched identities pending and none of them enabled; returns which, once they are seen to
/// be: a message may take its time, but what was pending stays so until it is claimed or cleared (AIA §3.8).
fn set_pending(hart: &Hart, random: &mut Random) -> u64 {
    imsic::set_enabled(!WATCHED);
    imsic::set_pending(imsic::pending() & !WATCHED);
    let mut pending = 0;
    for _ in 0..random.below(8) {
        let identity = 32 + random.below(32);
        imsic::send(hart.page(), identity);
        pending |= 1 << identity;
    }
    let end = csr::time() + board().ticks(LATEST_US);
    while imsic::pending() & WATCHED != pending && csr::time() < end {
        csr::pause();
    }
    pending
}
