//! `descriptors`: a driver that breaks every rule of its virtio block device, while another hart rewrites what it has written.
//!
//! Descriptors lead to the driver's own data and elsewhere, go round, and point to tables in tables; the index of the
//! available ring jumps. The device may refuse all of it. What the exercise asks for is that the driver can start it again each time, that
//! reads are right after it, and that no more of the guest's memory has changed than a descriptor named.

use core::sync::atomic::{AtomicBool, Ordering};

use exerciser::arguments::Arguments;
use exerciser::random::Random;

use super::{Exercise, Outcome, Verdict};
use crate::arch::csr;
use crate::arch::memory::{load, store, store16};
use crate::arch::sbi;
use crate::block::{Disk, ENTRIES, REQUESTS};
use crate::board::board;
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts;
use exerciser::workload::Trigger;

pub const EXERCISE: Exercise = Exercise {
    name: "descriptors",
    parameters: &["seed", "rounds", "harts", "give-back"],
    run,
};

/// Frames that no descriptor names, which stay as they are.
const WATCHED_FRAMES: u64 = 16;
const PATTERN: u64 = 0x5ca1_ab1e_0ddb_a115;
/// How long the device has for a read, in microseconds.
const PATIENCE: u64 = 5_000_000;

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let rounds = arguments.number("rounds", 2000, 1, 1 << 40)?;
    let harts = super::harts(arguments)?;
    let gives_back = arguments.choice("give-back", false, &[("yes", true), ("no", false)])?;
    let (mut disk, watched) = match (
        Disk::find(Trigger::Level, false, false),
        frames::take(WATCHED_FRAMES),
    ) {
        (Ok(disk), Some(watched)) => (disk, watched),
        (Err(why), _) => {
            say!("descriptors: {why}");
            return Ok(Verdict::Fail);
        }
        (_, None) => crate::start::fail(format_args!("not enough memory to watch")),
    };
    let words = || (watched..watched + WATCHED_FRAMES * FRAME).step_by(8);
    for at in words() {
        store(at, at ^ PATTERN);
    }
    let mut random = Random::new(seed);
    let (mut refused, mut wrong) = (0, 0);
    for round in 0..rounds {
        if let Err(why) = disk.start() {
            say!("descriptors: round {round}: {why}");
            return Ok(Verdict::Fail);
        }
        let manner = Manner {
            gentle: round % 2 == 0,
            gives_back,
        };
        attack(&disk, harts, manner, random.next());
        refused += u64::from(disk.needs_reset());
        if round % 64 == 0 {
            wrong += u64::from(disk.start().is_err() || !reads(&disk, random.next()));
        }
    }
    let changed = words().filter(|&at| load(at) != at ^ PATTERN).count();
    say!(
        "descriptors rounds={rounds} refused={refused} wrong-reads={wrong} changed-words={changed}"
    );
    Ok(Verdict::of(wrong == 0 && changed == 0 && refused > 0))
}

/// How a driver attacks.
#[derive(Clone, Copy)]
struct Manner {
    /// It mostly keeps to what is its right.
    gentle: bool,
    /// It gives the pages of its queue and its data back meanwhile.
    gives_back: bool,
}

/// Gives a page of the queue's or of the data's back.
fn give_page_back(disk: &Disk, random: &mut Random) {
    let (descriptors, available, data) = disk.places();
    let at = match random.below(4) {
        0 => descriptors,
        1 => available,
        _ => data + random.below(REQUESTS as u64 * FRAME / 2),
    };
    let function = abi::sbi::Function::ReturnPages.id() as u64;
    let arguments = [at & !(FRAME - 1), FRAME, 0, 0, 0, 0];
    sbi::call(abi::sbi::EXTENSION as u64, function, arguments);
}

/// A few notifications by one hart, with the others writing the same descriptors. A gentle attack is a driver's right, mostly: it
/// names its own data, and the device does work.
fn attack(disk: &Disk, harts: usize, manner: Manner, seed: u64) {
    let Manner { gentle, gives_back } = manner;
    let over = AtomicBool::new(false);
    harts::run(harts, &|hart| {
        let mut random = Random::new(seed ^ hart.index() as u64);
        if hart.index() != 0 {
            while !over.load(Ordering::Relaxed) {
                describe(disk, gentle, &mut random);
                if gives_back && random.one_in(16) {
                    give_page_back(disk, &mut random);
                }
            }
            return;
        }
        let (_, available, _) = disk.places();
        let mut index = 0_u64;
        for _ in 0..8 {
            for _ in 0..if gentle { 8 * ENTRIES } else { 16 } {
                describe(disk, gentle, &mut random);
            }
            for entry in 0..ENTRIES {
                store16(available + 4 + 2 * entry, random.below(ENTRIES) as u16);
            }
            index += match random.one_in(16) {
                true => random.below(1 << 16),
                false => random.below(4),
            };
            store16(available + 2, index as u16);
            disk.notify();
            if gives_back && random.one_in(4) {
                give_page_back(disk, &mut random);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// A part of an attack, by one hart: a few descriptors, an index that may jump, a notification; now and then a driver that starts anew.
pub(super) fn event(disk: &mut Disk, random: &mut Random) {
    if random.one_in(8) || disk.needs_reset() {
        // A device that refuses to start is no finding of this exercise: its registers may have been written with anything.
        let _ = disk.start();
    }
    let gentle = random.one_in(2);
    for _ in 0..4 + random.below(32) {
        describe(disk, gentle, random);
    }
    let (_, available, _) = disk.places();
    for entry in 0..ENTRIES {
        store16(available + 4 + 2 * entry, random.below(ENTRIES) as u16);
    }
    let index = match random.one_in(8) {
        true => random.below(1 << 16) as u16,
        false => disk.used_index().wrapping_add(random.below(4) as u16),
    };
    store16(available + 2, index);
    disk.notify();
}

/// Writes a descriptor. What it names is data of the disk's requests, or not the guest's at all.
fn describe(disk: &Disk, gentle: bool, random: &mut Random) {
    let (descriptors, _, data) = disk.places();
    let (start, end) = board().memory;
    let inside = data + random.below(REQUESTS as u64 * FRAME / 2);
    let gently = gentle && !random.one_in(64);
    let address = match random.below(8) {
        _ if gently => inside,
        0 => start - 1 - random.below(1 << 24),
        1 => end + random.below(1 << 24),
        2 => end - 1 - random.below(8),
        3 => random.next(),
        4 => descriptors,
        _ => inside,
    };
    // Another hart may put this length beside an address of its own: it ends in the data, or beyond all of the guest's memory.
    let length = match random.below(4) {
        _ if gently => 16 + random.below(FRAME),
        0 => 16 * random.below(8),
        1 => 1 << 31 | random.below(1 << 31),
        _ => 16 + random.below(FRAME),
    };
    let flags = random.below(if gently { 4 } else { 8 });
    let next = random.below(if gently { ENTRIES } else { ENTRIES + 2 });
    // Tables of descriptors may stand in the data, too.
    let table = match random.below(4) {
        0 => data,
        _ => descriptors,
    };
    let at = table + 16 * random.below(ENTRIES);
    store(at, address);
    store(at + 8, length | flags << 32 | next << 48);
}

/// Tests whether a few reads come back.
fn reads(disk: &Disk, seed: u64) -> bool {
    let mut random = Random::new(seed);
    for owner in 0..4 {
        if !disk.read(owner, random.next(), 8) {
            return false;
        }
    }
    let limit = csr::time() + board().ticks(PATIENCE);
    let mut left = 4;
    while left > 0 && csr::time() < limit {
        disk.collect(0, |_| left -= 1);
    }
    left == 0
}
