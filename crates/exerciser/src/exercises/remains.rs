//! `remains`: looks for what an earlier start of the computer has left in memory that nobody uses, and leaves a pattern there.
//!
//! With `disk=yes` no hart touches that memory before the disk has: the disk reads it first, so that what it finds is known, and writes the
//! pattern. There is no verdict on what is found: whether a start finds the pattern of another one is for the one who started them.

use core::sync::atomic::{Ordering, fence};

use exerciser::arguments::Arguments;
use exerciser::pattern::Pattern;
use exerciser::workload::Trigger;
use riscv::sbi::reset;
use riscv::virtio::queue::{DESCRIPTOR_BYTES, NEXT, WRITE};

use super::{Exercise, Outcome, Verdict};
use crate::arch::memory::{load, store, store16};
use crate::arch::{csr, sbi};
use crate::block::{Disk, ENTRIES};
use crate::board::board;
use crate::console::say;
use crate::frames::{self, FRAME};

pub const EXERCISE: Exercise = Exercise {
    name: "remains",
    parameters: &["memory-kib", "key", "disk", "then"],
    run,
};

/// Bytes between two words that are looked at, and between two sectors that the disk reads and writes.
const STRIDE: u64 = 512;
const SECTOR_STRIDE: u64 = 64 << 10;
/// Bytes of a sector.
const SECTOR: u64 = 512;
/// Longest time of a request, in microseconds.
const PATIENCE_US: u64 = 2_000_000;

/// Words that were looked at.
#[derive(Debug, Default)]
struct Found {
    words: u64,
    /// Those of the pattern, and those that are neither of it nor zero.
    left: u64,
    others: u64,
}

impl Found {
    fn note(&mut self, word: u64, pattern: u64) {
        self.words += 1;
        self.left += u64::from(word == pattern);
        self.others += u64::from(word != pattern && word != 0);
    }
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let memory = arguments.number("memory-kib", 16 << 10, 64, 1 << 26)? << 10;
    let pattern = Pattern::new(arguments.number("key", 5, 1, u64::MAX)?);
    let disk = arguments.choice("disk", false, &[("no", false), ("yes", true)])?;
    let kinds = [
        ("power-off", None),
        ("cold-reboot", Some(reset::COLD_REBOOT)),
        ("warm-reboot", Some(reset::WARM_REBOOT)),
    ];
    let then = arguments.choice("then", None, &kinds)?;
    // The disk's own frames come first, so that they are the same ones at each start.
    let disk = disk.then(Requests::new);
    let Some(start) = frames::take_aligned(memory / FRAME, FRAME) else {
        crate::start::fail(format_args!("memory-kib={} does not fit", memory >> 10));
    };
    let mut found = Found::default();
    let passed = match disk {
        None => {
            for at in (start..start + memory).step_by(STRIDE as usize) {
                found.note(load(at), pattern.word(at));
                store(at, pattern.word(at));
            }
            true
        }
        Some(Ok(mut disk)) => (start..start + memory)
            .step_by(SECTOR_STRIDE as usize)
            .all(|at| by_disk(&mut disk, at, pattern, &mut found)),
        Some(Err(why)) => crate::start::fail(format_args!("{why}")),
    };
    say!(
        "remains words={} left={} others={}",
        found.words,
        found.left,
        found.others
    );
    if let (Some(kind), true) = (then, passed) {
        let answer = sbi::reset(kind);
        say!("remains: reboot refused: error {}", answer.error);
        return Ok(Verdict::Fail);
    }
    Ok(Verdict::of(passed))
}

/// Looks at the sector's worth of memory at `at` and leaves the pattern there, by the disk alone. Returns false if the disk fails.
fn by_disk(disk: &mut Requests, at: u64, pattern: Pattern, found: &mut Found) -> bool {
    let buffer = disk.buffer;
    let looked = disk.transfer(true, at) && disk.transfer(false, buffer);
    for offset in (0..SECTOR).step_by(8) {
        found.note(load(buffer + offset), pattern.word(at + offset));
        store(buffer + offset, pattern.word(at + offset));
    }
    looked && disk.transfer(true, buffer) && disk.transfer(false, at)
}

/// A disk with one request at a time, of its first sector.
struct Requests {
    disk: Disk,
    header: u64,
    buffer: u64,
    made: u16,
}

impl Requests {
    fn new() -> Result<Self, &'static str> {
        Ok(Self {
            disk: Disk::find(Trigger::Level, false, false)?,
            header: frames::take(1).ok_or("memory is out")?,
            buffer: frames::take(1).ok_or("memory is out")?,
            made: 0,
        })
    }

    /// Writes the memory at `address` to the sector, or reads it from there, and waits for the end. Returns false if that fails.
    fn transfer(&mut self, is_write: bool, address: u64) -> bool {
        store(self.header, u64::from(is_write));
        store(self.header + 8, 0);
        store(self.header + 16, 0xff);
        let (descriptors, ring, _) = self.disk.places();
        let to_data = NEXT | if is_write { 0 } else { WRITE };
        let chain = [
            (self.header, 16, NEXT),
            (address, SECTOR, to_data),
            (self.header + 16, 1, WRITE),
        ];
        for (number, (address, bytes, flags)) in (0_u64..).zip(chain) {
            let at = descriptors + DESCRIPTOR_BYTES * number;
            store(at, self.disk.device_address(address));
            store(at + 8, bytes | u64::from(flags) << 32 | (number + 1) << 48);
        }
        store16(ring + 4 + 2 * (u64::from(self.made) % ENTRIES), 0);
        self.made = self.made.wrapping_add(1);
        fence(Ordering::Release);
        store16(ring + 2, self.made);
        self.disk.notify();
        let limit = csr::time() + board().ticks(PATIENCE_US);
        while self.disk.used_index() != self.made && csr::time() < limit {
            csr::take_interrupts();
        }
        self.disk.acknowledge();
        fence(Ordering::Acquire);
        self.disk.used_index() == self.made && load(self.header + 16) & 0xff == 0
    }
}
