//! `translations`: pages are remapped under running harts, and no read may ever see the frame of before.
//!
//! Each hart has two address spaces of its own, under the same two ASIDs as every other hart. In each, a
//! private window shows frames of the hart's own choice: a hypervisor that lets two vCPUs share a VMID
//! shows one the other's. A shared window is one table for all; who remaps a page there fences itself, and
//! the others by interrupts of ours or by SBI RFENCE. Every frame holds a pattern that names it, and two
//! instructions that return its number, so that instruction fetches are checked as well.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use exerciser::arguments::Arguments;
use exerciser::pattern::Pattern;
use exerciser::random::Random;
use riscv::sbi::RFENCE;

use super::{Exercise, Outcome, Verdict};
use crate::arch::paging::{IDENTITY_END, R, Space, W, WINDOW, X};
use crate::arch::{csr, memory, sbi};
use crate::board::{MAX_HARTS, board};
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts::{self, Hart};
use crate::interrupts::SHOOT_DOWN;

pub const EXERCISE: Exercise = Exercise {
    name: "translations",
    parameters: &[
        "harts",
        "rounds",
        "seed",
        "method",
        "pages",
        "sleep-one-in",
        "sweep-one-in",
        "remap",
    ],
    run,
};

/// Pages of a window at most.
const MAX_PAGES: usize = 64;
/// Frames that pages can be mapped to: fewer than a 12-bit immediate counts to.
const FRAMES: u64 = 256;
/// The shared window: the gigabyte after the private one.
const SHARED: u64 = WINDOW + (1 << 30);
/// The address space identifiers that every hart uses.
const ASIDS: [u64; 2] = [1, 2];

/// How other harts are fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Interrupt,
    Sbi,
    Both,
    /// Not at all: what a broken fence looks like. It must fail, which shows that the test can.
    None,
}

/// The page that a shoot-down is about.
static TARGET: AtomicU64 = AtomicU64::new(0);

/// Fences the page that is being remapped, and says so: called by the interrupt handler.
pub fn shoot_down(hart: &Hart) {
    csr::fence_translation(Some(TARGET.load(Ordering::Acquire)), None);
    hart.answered.fetch_add(1, Ordering::Release);
}

/// State that all harts share.
#[derive(Debug)]
struct Arena {
    /// First of the frames.
    frames: u64,
    pages: usize,
    /// The frame that each shared page shows, and its version: odd while it changes.
    shown: [AtomicU64; MAX_PAGES],
    version: [AtomicU64; MAX_PAGES],
    changing: AtomicBool,
    ready: AtomicUsize,
    done: AtomicUsize,
    checks: AtomicU64,
    stale: AtomicU64,
    remaps: [AtomicU64; 3],
}

impl Arena {
    fn frame(&self, number: u64) -> u64 {
        self.frames + number * FRAME
    }

    /// Checks that `address` shows frame `number`, at a random word and, now and then, by running it.
    fn verify(
        &self,
        hart: &Hart,
        random: &mut Random,
        address: u64,
        number: u64,
        is_still: impl Fn() -> bool,
    ) {
        let word = 8 * (1 + random.below(FRAME / 8 - 1));
        let found = memory::load(address + word);
        let called = if random.one_in(4) {
            memory::call(address)
        } else {
            number
        };
        fence(Ordering::SeqCst);
        if !is_still() {
            return;
        }
        self.checks.fetch_add(1, Ordering::Relaxed);
        let wanted = Pattern::new(number).word(word);
        let is_right = found == wanted && called == number;
        if !is_right && self.stale.fetch_add(1, Ordering::Relaxed) < 20 {
            say!(
                "translations: hart {} at {address:#x} wants frame {number}; data right: {}, fetched frame {called}",
                hart.index(),
                found == wanted
            );
        }
    }
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let harts = super::harts(arguments)?;
    let rounds = arguments.number("rounds", 20_000, 1, 1 << 40)?;
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let pages = arguments.number("pages", 16, 1, MAX_PAGES as u64)? as usize;
    let sleep_one_in = arguments.number("sleep-one-in", 200, 0, 1 << 32)?;
    let sweep_one_in = arguments.number("sweep-one-in", 50, 0, 1 << 32)?;
    let shares = arguments.choice("remap", true, &[("all", true), ("private", false)])?;
    let choices = [
        ("ipi", Method::Interrupt),
        ("sbi", Method::Sbi),
        ("both", Method::Both),
        ("none", Method::None),
    ];
    let method = arguments.choice("method", Method::Both, &choices)?;
    let (Some(arena), Some(spaces)) = (make_arena(pages), make_spaces(harts)) else {
        crate::start::fail(format_args!(
            "not enough memory for frames and tables of {harts} harts"
        ));
    };
    for page in 0..pages {
        map_shared(&spaces[0][0], page, arena.frame(page as u64));
    }
    for hart in 0..harts {
        for space in spaces.get(hart).into_iter().flatten() {
            space.share(spaces[0][0], SHARED, 1);
        }
    }
    harts::run(harts, &|hart| {
        let mine = spaces.get(hart.index()).copied().unwrap_or(spaces[0]);
        walk(
            &arena,
            hart,
            &mine,
            harts,
            method,
            &Parameters {
                rounds,
                seed,
                sleep_one_in,
                sweep_one_in,
                shares,
            },
        );
    });
    let stale = arena.stale.load(Ordering::Relaxed);
    let [private, interrupts, calls] = arena
        .remaps
        .each_ref()
        .map(|count| count.load(Ordering::Relaxed));
    say!(
        "translations checks={} remaps-private={private} remaps-by-ipi={interrupts} remaps-by-sbi={calls} stale={stale}",
        arena.checks.load(Ordering::Relaxed),
    );
    Ok(Verdict::of(stale == 0))
}

struct Parameters {
    rounds: u64,
    seed: u64,
    sleep_one_in: u64,
    sweep_one_in: u64,
    /// True if shared pages are remapped too: others may use one between its change and their fence.
    shares: bool,
}

fn make_arena(pages: usize) -> Option<Arena> {
    let arena = Arena {
        frames: frames::take(FRAMES)?,
        pages,
        shown: core::array::from_fn(|page| AtomicU64::new(page as u64)),
        version: [const { AtomicU64::new(0) }; MAX_PAGES],
        changing: AtomicBool::new(false),
        ready: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        checks: AtomicU64::new(0),
        stale: AtomicU64::new(0),
        remaps: [const { AtomicU64::new(0) }; 3],
    };
    for number in 0..FRAMES {
        let frame = arena.frame(number);
        for offset in (8..FRAME).step_by(8) {
            memory::store(frame + offset, Pattern::new(number).word(offset));
        }
        // addi a0, x0, number; jalr x0, 0(ra).
        memory::store(frame, 0x0000_8067 << 32 | number << 20 | 0x513);
    }
    csr::fence_instructions();
    Some(arena)
}

/// Two spaces a hart, both with the kernel where it is.
fn make_spaces(harts: usize) -> Option<[[Space; 2]; MAX_HARTS]> {
    let make = || {
        let space = Space::new()?;
        space.map(0, 0, IDENTITY_END, R | W | X)?;
        space.entry(WINDOW, 0)?;
        Some(space)
    };
    let first = [make()?, make()?];
    first[0].entry(SHARED, 0)?;
    let mut spaces = [first; MAX_HARTS];
    for pair in spaces.iter_mut().take(harts).skip(1) {
        *pair = [make()?, make()?];
    }
    Some(spaces)
}

fn map_shared(space: &Space, page: usize, frame: u64) {
    if let Some(entry) = space.entry(SHARED + page as u64 * FRAME, 0) {
        memory::store(entry, Space::leaf(frame, R | X));
    }
}

/// One hart's part.
fn walk(
    arena: &Arena,
    hart: &Hart,
    spaces: &[Space; 2],
    harts: usize,
    method: Method,
    parameters: &Parameters,
) {
    let mut random = Random::stream(parameters.seed, hart.index() as u64);
    let mut shown = [[0u64; MAX_PAGES]; 2];
    for (space, shown) in spaces.iter().zip(&mut shown) {
        for (page, number) in shown.iter_mut().enumerate().take(arena.pages) {
            *number = random.below(FRAMES);
            if let Some(entry) = space.entry(WINDOW + page as u64 * FRAME, 0) {
                memory::store(entry, Space::leaf(arena.frame(*number), R | X));
            }
        }
    }
    // Without ASIDs (ASIDLEN = 0) two spaces are told apart by a fence at each switch.
    let mut current = 0;
    switch(spaces, current, true);
    let has_asids = csr::translation() >> 44 & 0xffff == ASIDS[0];
    harts::meet(&arena.ready, harts);
    for _ in 0..parameters.rounds {
        let page = random.below(arena.pages as u64) as usize;
        let address = page as u64 * FRAME;
        match random.below(8) {
            0 => {
                current = 1 - current;
                switch(spaces, current, !has_asids);
            }
            1..4 => {
                let number = random.below(FRAMES);
                shown[current][page] = number;
                if let Some(entry) = spaces[current].entry(WINDOW + address, 0) {
                    memory::store(entry, Space::leaf(arena.frame(number), R | X));
                }
                // Each form of the fence that covers the page.
                let form = random.below(4);
                if method != Method::None {
                    csr::fence_translation(
                        (form & 1 == 0).then_some(WINDOW + address),
                        (form & 2 == 0).then_some(ASIDS[current]),
                    );
                }
                arena.remaps[0].fetch_add(1, Ordering::Relaxed);
            }
            4 if parameters.shares => {
                remap_shared(arena, hart, &spaces[0], harts, method, &mut random, page)
            }
            _ => {}
        }
        if parameters.sweep_one_in != 0 && random.one_in(parameters.sweep_one_in) {
            for (page, &number) in shown[current].iter().enumerate().take(arena.pages) {
                let address = WINDOW + page as u64 * FRAME;
                arena.verify(hart, &mut random, address, number, || true);
            }
        }
        let private = shown[current][page];
        arena.verify(hart, &mut random, WINDOW + address, private, || true);
        let version = arena.version[page].load(Ordering::Acquire);
        if version.is_multiple_of(2) {
            let number = arena.shown[page].load(Ordering::Acquire);
            arena.verify(hart, &mut random, SHARED + address, number, || {
                arena.version[page].load(Ordering::Acquire) == version
            });
        }
        csr::take_interrupts();
        if parameters.sleep_one_in != 0 && random.one_in(parameters.sleep_one_in) {
            harts::sleep_until(csr::time() + board().ticks(20 + random.below(200)));
        }
    }
    // Others still want their fences.
    arena.done.fetch_add(1, Ordering::AcqRel);
    while arena.done.load(Ordering::Acquire) < harts {
        harts::sleep_until(csr::time() + board().ticks(1000));
    }
    crate::arch::paging::turn_off();
}

fn switch(spaces: &[Space; 2], to: usize, with_fence: bool) {
    crate::arch::paging::enter(spaces[to], ASIDS[to]);
    if with_fence {
        csr::fence_translation(None, None);
    }
}

/// Shows another frame at a shared page, to everybody.
fn remap_shared(
    arena: &Arena,
    hart: &Hart,
    space: &Space,
    harts: usize,
    method: Method,
    random: &mut Random,
    page: usize,
) {
    // Who waits here still answers fences.
    harts::wait_until(|| !arena.changing.swap(true, Ordering::Acquire));
    let by_interrupt = match method {
        Method::Interrupt => true,
        Method::Sbi => false,
        Method::Both => random.one_in(2),
        Method::None => false,
    };
    let number = random.below(FRAMES);
    let address = SHARED + page as u64 * FRAME;
    arena.version[page].fetch_add(1, Ordering::AcqRel);
    map_shared(space, page, arena.frame(number));
    if method != Method::None {
        csr::fence_translation(Some(address), None);
    }
    let others = || {
        harts::all(harts)
            .iter()
            .filter(|other| other.index() != hart.index())
    };
    if by_interrupt {
        TARGET.store(address, Ordering::Release);
        let mut before = [0; MAX_HARTS];
        for (other, count) in others().zip(&mut before) {
            *count = other.answered.load(Ordering::Acquire);
        }
        others().for_each(|other| other.send(SHOOT_DOWN));
        for (other, count) in others().zip(before) {
            harts::wait_until(|| other.answered.load(Ordering::Acquire) != count);
        }
    } else if method != Method::None {
        // One page, with and without the ASID (RFENCE functions 2 and 1), of all other harts.
        let base = others().map(Hart::id).min().unwrap_or(0);
        let mask = others().fold(0, |mask, other| mask | 1 << (other.id() - base));
        for asid in ASIDS {
            let function = if random.one_in(2) { 1 } else { 2 };
            let answer = sbi::call(RFENCE, function, [mask, base, address, FRAME, asid, 0]);
            if answer.error != 0 {
                crate::start::fail(format_args!(
                    "remote fence {function}: SBI error {}",
                    answer.error
                ));
            }
        }
    }
    arena.remaps[if by_interrupt { 1 } else { 2 }].fetch_add(1, Ordering::Relaxed);
    arena.shown[page].store(number, Ordering::Release);
    arena.version[page].fetch_add(1, Ordering::AcqRel);
    arena.changing.store(false, Ordering::Release);
}
