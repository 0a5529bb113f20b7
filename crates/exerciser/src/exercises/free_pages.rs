//! `free-pages`: pages are given back to the hypervisor while all harts use memory (placement `paged`).
//!
//! Each hart has pages of its own: what it has written there stays until it gives a page back, which shows zeros from then on. Beside them
//! there are pages that all harts write to and give back at once, by what they still know of them: what is there means nothing, but no store
//! may reach a frame that somebody else has got by then. A neighbour that checks its own memory sees that, and so do the other harts' pages.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::sbi::{EXTENSION, Function};
use exerciser::arguments::Arguments;
use exerciser::pattern::Pattern;
use exerciser::random::Random;
use riscv::sbi::error::{INVALID_ADDRESS, INVALID_PARAMETER};

use super::{Exercise, Outcome, Verdict};
use crate::arch::memory::{load, store};
use crate::arch::sbi;
use crate::board::{MAX_HARTS, board};
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts;

pub const EXERCISE: Exercise = Exercise {
    name: "free-pages",
    parameters: &["harts", "rounds", "seed", "pages", "common-pages"],
    run,
};

/// Pages of a hart at most.
const MAX_PAGES: usize = 1024;

/// Findings of all harts.
#[derive(Debug, Default)]
struct Found {
    checks: AtomicU64,
    given: AtomicU64,
    wrong: AtomicU64,
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let harts = super::harts(arguments)?;
    let rounds = arguments.number("rounds", 2000, 1, 1 << 40)?;
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let pages = arguments.number("pages", 256, 1, MAX_PAGES as u64)?;
    let common_pages = arguments.number("common-pages", 64, 1, 1 << 20)?;
    let mut own = [0; MAX_HARTS];
    for region in own.iter_mut().take(harts) {
        *region = take(pages);
    }
    let common = take(common_pages);
    if !refusals_are_right(common) {
        return Ok(Verdict::Fail);
    }
    let found = Found::default();
    harts::run(harts, &|hart| {
        let mut random = Random::stream(seed, hart.index() as u64);
        let base = own.get(hart.index()).copied().unwrap_or(common);
        let mut area = Own {
            base,
            pages,
            written: [0; MAX_PAGES],
        };
        for round in 1..=rounds {
            area.write(random.below(pages), round);
            area.check(random.below(pages), &mut random, &found);
            let word = random.below(common_pages * FRAME / 8);
            store(common + 8 * word, random.next());
            if random.one_in(8) {
                area.give_back(&mut random, &found);
            }
            if random.one_in(8) {
                let first = random.below(common_pages);
                let count = 1 + random.below(common_pages - first);
                give_back(common + first * FRAME, count, &found);
            }
        }
        (0..pages).for_each(|page| area.check(page, &mut random, &found));
    });
    let [checks, given, wrong] =
        [&found.checks, &found.given, &found.wrong].map(|count| count.load(Ordering::Relaxed));
    say!("free-pages checks={checks} pages-given={given} wrong={wrong}");
    Ok(Verdict::of(wrong == 0 && given > 0))
}

fn take(pages: u64) -> u64 {
    frames::take_aligned(pages, FRAME)
        .unwrap_or_else(|| crate::start::fail(format_args!("not enough memory for {pages} pages")))
}

/// One call; gives the error and how many bytes have been seen to.
fn call(at: u64, bytes: u64) -> (i64, u64) {
    let function = Function::ReturnPages.id() as u64;
    let answer = sbi::call(EXTENSION as u64, function, [at, bytes, 0, 0, 0, 0]);
    (answer.error, answer.value)
}

/// Gives so many pages back.
fn give_back(at: u64, pages: u64, found: &Found) {
    let mut done = 0;
    while done < pages * FRAME {
        let (error, bytes) = call(at + done, pages * FRAME - done);
        if error != 0 || bytes == 0 {
            say!("free-pages: {at:#x}, {pages} pages: error {error}, {bytes} bytes");
            found.wrong.fetch_add(1, Ordering::Relaxed);
            return;
        }
        done += bytes;
    }
    found.given.fetch_add(pages, Ordering::Relaxed);
}

/// Tests whether what cannot be is refused.
fn refusals_are_right(inside: u64) -> bool {
    let (start, end) = board().memory;
    let mut right = true;
    for (at, bytes, wanted) in [
        (inside + 8, FRAME, INVALID_PARAMETER),
        (inside, FRAME - 1, INVALID_PARAMETER),
        (end, FRAME, INVALID_ADDRESS),
        (end - FRAME, 2 * FRAME, INVALID_ADDRESS),
        (start - FRAME, FRAME, INVALID_ADDRESS),
        (u64::MAX - FRAME + 1, 2 * FRAME, INVALID_ADDRESS),
        (inside, u64::MAX - FRAME + 1, INVALID_ADDRESS),
        (inside, 0, 0),
    ] {
        let (error, _) = call(at, bytes);
        if error != wanted {
            say!("free-pages: {bytes:#x} bytes at {at:#x}: error {error} for {wanted}");
            right = false;
        }
    }
    right
}

/// The pages of one hart.
struct Own {
    base: u64,
    pages: u64,
    /// The round in which each was written last; 0 where it shows zeros, or was never used.
    written: [u64; MAX_PAGES],
}

impl Own {
    fn at(&self, page: u64) -> u64 {
        self.base + page * FRAME
    }

    fn write(&mut self, page: u64, round: u64) {
        let pattern = Pattern::new(round);
        for word in 0..FRAME / 8 {
            let at = self.at(page) + 8 * word;
            store(at, pattern.word(at));
        }
        self.written[page as usize] = round;
    }

    /// Looks at a few words of a page.
    fn check(&self, page: u64, random: &mut Random, found: &Found) {
        let round = self.written[page as usize];
        for _ in 0..8 {
            let at = self.at(page) + 8 * random.below(FRAME / 8);
            let wanted = if round == 0 {
                0
            } else {
                Pattern::new(round).word(at)
            };
            let is = load(at);
            found.checks.fetch_add(1, Ordering::Relaxed);
            if is != wanted && found.wrong.fetch_add(1, Ordering::Relaxed) < 20 {
                say!("free-pages: {at:#x} of round {round} is {is:#x} for {wanted:#x}");
            }
        }
    }

    fn give_back(&mut self, random: &mut Random, found: &Found) {
        let first = random.below(self.pages);
        let count = 1 + random.below((self.pages - first).min(200));
        give_back(self.at(first), count, found);
        for page in first..first + count {
            self.written[page as usize] = 0;
        }
        self.check(first, random, found);
    }
}
