//! `ipi`: interrupts between all pairs of harts, counted and answered, none lost and none doubled.
//!
//! A hart sends an interrupt to each other one in turn and waits for its answer before the next, as a
//! pending bit is one bit. It waits in WFI, spinning with interrupts open, or by turns (`wait=`). Interrupts go
//! to interrupt files, or by SBI (`via=sbi`, and where there are no files). With `limit-ms=0` no timer ends a wait, so that a wake that
//! is lost stays lost.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use exerciser::arguments::Arguments;
use exerciser::distribution::Distribution;

use super::{Exercise, Outcome, Verdict};
use crate::arch::csr;
use crate::arch::sync::Lock;
use crate::board::board;
use crate::console::say;
use crate::harts::{self, Hart};
use crate::interrupts::{FIRST_COUNTED, WAKE};

pub const EXERCISE: Exercise = Exercise {
    name: "ipi",
    parameters: &["harts", "count", "wait", "limit-ms", "via"],
    run,
};

/// Number of harts whose questions and answers have an identity each.
const MAX_COUNTED_HARTS: usize = 24;

/// The identity of a question by the hart of this index.
const fn question(sender: usize) -> u64 {
    FIRST_COUNTED + sender as u64
}

/// The identity of an answer by the hart of this index.
const fn answer(sender: usize) -> u64 {
    FIRST_COUNTED + (MAX_COUNTED_HARTS + sender) as u64
}

/// Answers a question: called by the interrupt handler with what was claimed.
pub fn serve(hart: &Hart, identity: u64) {
    let sender = identity
        .checked_sub(FIRST_COUNTED)
        .map_or(MAX_COUNTED_HARTS, |index| index as usize);
    // Identities beyond the questions are answers.
    if let Some(asker) = harts::all(MAX_COUNTED_HARTS.min(board().hart_count)).get(sender) {
        asker.send(answer(hart.index()));
    }
}

/// How a hart waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Interrupt,
    Spin,
    Both,
}

/// The choices of `wait=`.
pub const WAITS: [(&str, Wait); 3] = [
    ("wfi", Wait::Interrupt),
    ("spin", Wait::Spin),
    ("both", Wait::Both),
];

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = arguments.number("count", 200, 1, 1 << 40)?;
    let limit_ms = arguments.number("limit-ms", 5000, 0, 1 << 32)?;
    let wait = arguments.choice("wait", Wait::Both, &WAITS)?;
    let harts = super::harts(arguments)?;
    let board = board();
    if !(2..=MAX_COUNTED_HARTS).contains(&harts) {
        say!("ipi needs 2 to {MAX_COUNTED_HARTS} harts");
        return Ok(Verdict::Fail);
    }
    if arguments.choice("via", false, &[("imsic", false), ("sbi", true)])? {
        harts::send_by_sbi();
    }
    let limit_from = |time: u64| match limit_ms {
        0 => u64::MAX,
        milliseconds => time + board.ticks(milliseconds * 1000),
    };
    let (lost, ready, done) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let latencies = Lock::new([Distribution::new(), Distribution::new()]);
    harts::run(harts, &|hart| {
        let me = hart.index();
        let mut mine = [Distribution::new(), Distribution::new()];
        // Everybody's file is open before the first question.
        harts::meet(&ready, harts);
        'rounds: for round in 1..=count {
            let sleeps = wait == Wait::Interrupt || wait == Wait::Both && round % 2 == 0;
            for target in harts::all(harts)
                .iter()
                .filter(|target| target.index() != me)
            {
                let sent = csr::time();
                let limit = limit_from(sent);
                target.send(question(me));
                while hart.taken(answer(target.index())) < round {
                    if csr::time() > limit {
                        lost.fetch_add(1, Ordering::Relaxed);
                        say!(
                            "ipi {me} to {}: no answer {round}; it took {} and {} answers came",
                            target.index(),
                            target.taken(question(me)),
                            hart.taken(answer(target.index()))
                        );
                        break 'rounds;
                    }
                    if sleeps {
                        // Checked with interrupts closed, so that an answer between check and WFI ends the WFI.
                        harts::sleep_until(limit.saturating_add(1));
                    } else {
                        csr::take_interrupts();
                        csr::pause();
                    }
                }
                if let Some(distribution) = mine.get_mut(usize::from(sleeps)) {
                    distribution.add(board.nanoseconds(csr::time() - sent));
                }
            }
        }
        done.fetch_add(1, Ordering::AcqRel);
        for other in harts::all(harts) {
            other.send(WAKE);
        }
        // Others may still ask.
        while done.load(Ordering::Acquire) < harts {
            harts::sleep_until(limit_from(csr::time()));
        }
        let mut all = latencies.lock();
        for (total, part) in all.iter_mut().zip(&mine) {
            total.merge(part);
        }
    });
    let mut wrong = 0;
    for receiver in harts::all(harts) {
        for sender in harts::all(harts)
            .iter()
            .filter(|sender| sender.index() != receiver.index())
        {
            for identity in [question(sender.index()), answer(sender.index())] {
                let taken = receiver.taken(identity);
                if taken != count {
                    wrong += 1;
                    say!(
                        "ipi identity {identity} came {taken} times to hart {}, not {count}",
                        receiver.index()
                    );
                }
            }
        }
    }
    let lost = lost.into_inner();
    let latencies = latencies.lock();
    say!("ipi round-trip-ns spinning: {}", latencies[0]);
    say!("ipi round-trip-ns sleeping: {}", latencies[1]);
    let pairs = harts * (harts - 1);
    say!(
        "ipi pairs={pairs} interrupts={} lost={lost} miscounted={wrong}",
        pairs as u64 * count * 2
    );
    Ok(Verdict::of(lost == 0 && wrong == 0))
}
