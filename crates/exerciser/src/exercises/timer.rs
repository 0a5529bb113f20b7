//! `timer`: deadlines on every hart: none lost, none early, and how late each came.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use exerciser::arguments::Arguments;
use exerciser::distribution::Distribution;
use exerciser::random::Random;

use super::ipi::{WAITS, Wait};
use super::{Exercise, Outcome, Verdict};
use crate::arch::csr;
use crate::arch::sync::Lock;
use crate::board::board;
use crate::console::say;
use crate::harts;
use crate::interrupts::WAKE;

pub const EXERCISE: Exercise = Exercise {
    name: "timer",
    parameters: &["harts", "count", "wait", "limit-ms", "longest-us", "seed"],
    run,
};

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = arguments.number("count", 500, 1, 1 << 40)?;
    let limit_ms = arguments.number("limit-ms", 5000, 1, 1 << 32)?;
    let longest = arguments.number("longest-us", 2000, 1, 1 << 32)?;
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let wait = arguments.choice("wait", Wait::Both, &WAITS)?;
    let harts = super::harts(arguments)?;
    let board = board();
    let limit = board.ticks(limit_ms * 1000);
    let (lost, early, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
    let lateness = Lock::new([Distribution::new(), Distribution::new()]);
    harts::run(harts, &|hart| {
        let mut random = Random::stream(seed, hart.index() as u64);
        let mut mine = [Distribution::new(), Distribution::new()];
        let neighbour = harts::all(harts).get((hart.index() + 1) % harts);
        csr::set_interrupt_enables(csr::interrupt_enables() | csr::TIMER);
        for round in 0..count {
            let sleeps = wait == Wait::Interrupt || wait == Wait::Both && round % 2 == 0;
            let before = hart.timers.load(Ordering::Acquire);
            let deadline = csr::time() + board.ticks(1 + random.below(longest));
            harts::set_timer(deadline);
            let mut came = false;
            while !came {
                if csr::time() > deadline.saturating_add(limit) {
                    lost.fetch_add(1, Ordering::Relaxed);
                    say!(
                        "timer of hart {} lost: deadline {deadline}, now {}",
                        hart.index(),
                        csr::time()
                    );
                    break;
                }
                if sleeps {
                    csr::wait_for_interrupt();
                } else {
                    csr::pause();
                }
                csr::take_interrupts();
                came = hart.timers.load(Ordering::Acquire) != before;
            }
            let taken = hart.timer_taken.load(Ordering::Relaxed);
            if came && taken < deadline {
                early.fetch_add(1, Ordering::Relaxed);
                say!(
                    "timer of hart {} came {} ticks early",
                    hart.index(),
                    deadline - taken
                );
            }
            if let (true, Some(distribution)) = (came, mine.get_mut(usize::from(sleeps))) {
                distribution.add(board.nanoseconds(taken.saturating_sub(deadline)));
            }
            // A hart whose timer is lost sleeps until somebody wakes it and it sees the clock.
            if let (0, Some(other)) = (round % 64, neighbour) {
                other.send(WAKE);
            }
        }
        done.fetch_add(1, Ordering::AcqRel);
        while done.load(Ordering::Acquire) < harts {
            if let Some(other) = neighbour {
                other.send(WAKE);
            }
            harts::sleep_until(csr::time() + board.ticks(10_000));
        }
        csr::set_interrupt_enables(csr::interrupt_enables() & !csr::TIMER);
        let mut all = lateness.lock();
        for (total, part) in all.iter_mut().zip(&mine) {
            total.merge(part);
        }
    });
    let lateness = lateness.lock();
    say!("timer late-ns spinning: {}", lateness[0]);
    say!("timer late-ns sleeping: {}", lateness[1]);
    let (lost, early) = (lost.into_inner(), early.into_inner());
    say!(
        "timer deadlines={} lost={lost} early={early}",
        count * harts as u64
    );
    Ok(Verdict::of(lost == 0 && early == 0))
}
