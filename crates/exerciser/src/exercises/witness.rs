//! `witness`: the VM that a hostile neighbour must not reach. It computes all the time, and checks its memory, its disk and its interrupts.
//!
//! A turn is work of registers alone, so each takes equally long where nobody takes the hart away: the shortest turn times their number is
//! the time that the hart was had, and its part of the time that passed is the share.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use exerciser::arguments::Arguments;
use exerciser::pattern::Pattern;
use exerciser::random::Random;

use super::{Exercise, Outcome, Verdict};
use crate::arch::csr;
use crate::arch::memory::{load, store, store16};
use crate::block::Disk;
use crate::board::{MAX_HARTS, board};
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts::{self, Hart};
use exerciser::workload::Trigger;
use riscv::virtio::queue::{DESCRIPTOR_BYTES, NEXT, WRITE};

pub const EXERCISE: Exercise = Exercise {
    name: "witness",
    parameters: &["harts", "duration-ms", "memory-kib", "disk-key", "seed"],
    run,
};

/// Identity of the interrupts that a hart sends to itself; nothing else is done at it.
const COUNTED: u64 = 60;
/// Rounds of a multiplication in a turn: long beside a tick of the clock, short beside a time slice.
const MULTIPLICATIONS: u64 = 20_000;
/// An odd factor.
const FACTOR: u64 = 3;
/// Turns between two interrupts that a hart sends to itself, and between two deadlines of its timer.
const TURNS_BETWEEN_INTERRUPTS: u64 = 8;
/// Words that are checked after a turn.
const WORDS_A_TURN: u64 = 64;
/// How far ahead a deadline lies, in microseconds.
const DEADLINE_US: u64 = 150;
/// How long an interrupt or a request may take while this VM has its hart, in microseconds.
const PATIENCE_US: u64 = 2_000_000;
/// Bytes of a sector.
const SECTOR: u64 = 512;
/// The part of the disk that is written, from its end: one in so many sectors. The others stay as they were made.
const WRITTEN_PART: u64 = 4;

/// Findings of all harts.
#[derive(Debug, Default)]
struct Found {
    /// Sum of the harts' shares, in thousandths of a hart.
    share: AtomicU64,
    disturbed: AtomicU64,
    wrong_sectors: AtomicU64,
    sectors: AtomicU64,
    lost: AtomicU64,
    doubled: AtomicU64,
    early: AtomicU64,
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let duration = arguments.number("duration-ms", 100, 1, 1 << 32)?;
    let memory_kib = arguments.number("memory-kib", 256, 4, 1 << 22)?;
    let disk_key = arguments.number("disk-key", 0, 0, u64::MAX)?;
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let frames_each = memory_kib.div_ceil(4);
    let mut regions = [0; MAX_HARTS];
    for region in regions.iter_mut().take(count) {
        match frames::take_aligned(frames_each, FRAME) {
            Some(start) => *region = start,
            None => crate::start::fail(format_args!("memory-kib={memory_kib} does not fit")),
        }
    }
    let disk = match disk_key {
        0 => None,
        key => match DiskWitness::new(key, seed) {
            Ok(disk) => Some(crate::arch::sync::Lock::new(disk)),
            Err(why) => crate::start::fail(format_args!("{why}")),
        },
    };
    let found = Found::default();
    let end = csr::time() + board().ticks(duration * 1000);
    harts::run(count, &|hart| {
        let start = regions.get(hart.index()).copied().unwrap_or(0);
        let region = Region::new(start, frames_each * FRAME / 8, seed ^ hart.index() as u64);
        let disk = disk.as_ref().filter(|_| hart.index() == 0);
        witness(hart, region, end, disk, &found);
    });
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    say!(
        "witness harts={count} share-per-mille={} disturbed={} sectors={} wrong-sectors={} lost={} doubled={} early={}",
        of(&found.share),
        of(&found.disturbed),
        of(&found.sectors),
        of(&found.wrong_sectors),
        of(&found.lost),
        of(&found.doubled),
        of(&found.early),
    );
    let wrong = [
        &found.disturbed,
        &found.wrong_sectors,
        &found.lost,
        &found.doubled,
        &found.early,
    ];
    Ok(Verdict::of(wrong.into_iter().all(|count| of(count) == 0)))
}

/// Computes and checks until `end` on one hart.
fn witness(
    hart: &'static Hart,
    mut region: Region,
    end: u64,
    disk: Option<&crate::arch::sync::Lock<DiskWitness>>,
    found: &Found,
) {
    let mut interrupts = Interrupts::new(hart);
    csr::set_interrupt_enables(csr::EXTERNAL | csr::SOFTWARE | csr::TIMER);
    let (mut turns, mut shortest) = (0_u64, u64::MAX);
    let begun = csr::time();
    while csr::time() < end {
        let before = csr::time();
        compute();
        shortest = shortest.min(csr::time() - before);
        csr::take_interrupts();
        turns += 1;
        region.check(WORDS_A_TURN, found);
        if turns % TURNS_BETWEEN_INTERRUPTS == 0 {
            interrupts.step(found);
            if let Some(disk) = disk {
                disk.lock().step(found);
            }
        }
    }
    let passed = (csr::time() - begun).max(1);
    found
        .share
        .fetch_add(turns * shortest * 1000 / passed, Ordering::Relaxed);
    interrupts.end(found);
    if let Some(disk) = disk {
        disk.lock().end(found);
    }
    region.check(region.words, found);
}

/// A turn.
fn compute() {
    let mut value = 1_u64;
    for _ in 0..MULTIPLICATIONS {
        value = black_box(value.wrapping_mul(FACTOR) ^ 1);
    }
}

/// Memory of a hart that nobody else may write.
struct Region {
    start: u64,
    words: u64,
    pattern: Pattern,
    next: u64,
}

impl Region {
    fn new(start: u64, words: u64, key: u64) -> Self {
        let pattern = Pattern::new(key);
        for at in (start..start + 8 * words).step_by(8) {
            store(at, pattern.word(at));
        }
        Self {
            start,
            words,
            pattern,
            next: 0,
        }
    }

    fn check(&mut self, count: u64, found: &Found) {
        for _ in 0..count {
            let at = self.start + 8 * self.next;
            let word = load(at);
            if word != self.pattern.word(at) {
                say!("witness: word {at:#x} is {word:#x}");
                found.disturbed.fetch_add(1, Ordering::Relaxed);
                store(at, self.pattern.word(at));
            }
            self.next = (self.next + 1) % self.words;
        }
    }
}

/// Interrupts that a hart sends to itself, and deadlines of its timer: each comes once.
struct Interrupts {
    hart: &'static Hart,
    sent: u64,
    timers: u64,
    /// The present deadline; 0 where there is none.
    deadline: u64,
    /// When the interrupt that has not come yet was sent.
    since: u64,
}

impl Interrupts {
    fn new(hart: &'static Hart) -> Self {
        Self {
            hart,
            sent: hart.taken(COUNTED),
            timers: hart.timers.load(Ordering::Relaxed),
            deadline: 0,
            since: 0,
        }
    }

    /// Checks what was sent, and sends again.
    fn step(&mut self, found: &Found) {
        let now = csr::time();
        let (taken, timers) = (
            self.hart.taken(COUNTED),
            self.hart.timers.load(Ordering::Acquire),
        );
        found
            .doubled
            .fetch_add(taken.saturating_sub(self.sent), Ordering::Relaxed);
        if taken >= self.sent {
            self.sent = taken + 1;
            self.since = now;
            self.hart.send(COUNTED);
        } else if now - self.since > board().ticks(PATIENCE_US) {
            found.lost.fetch_add(1, Ordering::Relaxed);
            self.sent = taken;
        }
        let expected = self.timers + u64::from(self.deadline != 0);
        found
            .doubled
            .fetch_add(timers.saturating_sub(expected), Ordering::Relaxed);
        if timers >= expected {
            let taken_at = self.hart.timer_taken.load(Ordering::Relaxed);
            let is_early = self.deadline != 0 && taken_at < self.deadline;
            found
                .early
                .fetch_add(u64::from(is_early), Ordering::Relaxed);
            self.timers = timers;
            self.deadline = csr::time() + board().ticks(DEADLINE_US);
            harts::set_timer(self.deadline);
        }
    }

    /// Waits for what is still to come, and checks that nothing comes after it.
    fn end(&mut self, found: &Found) {
        let limit = csr::time() + board().ticks(PATIENCE_US);
        let timers = self.timers + u64::from(self.deadline != 0);
        let hart = self.hart;
        let all_came =
            || hart.taken(COUNTED) >= self.sent && hart.timers.load(Ordering::Acquire) >= timers;
        while !all_came() && csr::time() < limit {
            csr::take_interrupts();
        }
        (0..64).for_each(|_| csr::take_interrupts());
        let taken = hart.taken(COUNTED);
        let timed = hart.timers.load(Ordering::Acquire);
        let lost = self.sent.saturating_sub(taken) + timers.saturating_sub(timed);
        let doubled = taken.saturating_sub(self.sent) + timed.saturating_sub(timers);
        found.lost.fetch_add(lost, Ordering::Relaxed);
        found.doubled.fetch_add(doubled, Ordering::Relaxed);
    }
}

/// The witness's disk: one request at a time, whose answer is checked at a later step.
struct DiskWitness {
    disk: Disk,
    original: Pattern,
    written: Pattern,
    random: Random,
    header: u64,
    data: u64,
    available: u16,
    /// The sector that is read, or written if so, and when it was asked for.
    pending: Option<(u64, bool, u64)>,
    /// First sector that is written, and how many from there were.
    first_written: u64,
    count_written: u64,
}

impl DiskWitness {
    fn new(key: u64, seed: u64) -> Result<Self, &'static str> {
        let disk = Disk::find(Trigger::Level, false, false)?;
        let first_written = disk.sectors() - disk.sectors() / WRITTEN_PART;
        Ok(Self {
            disk,
            original: Pattern::new(key),
            written: Pattern::new(!key),
            random: Random::new(seed ^ key),
            header: frames::take(1).ok_or("memory is out")?,
            data: frames::take(1).ok_or("memory is out")?,
            available: 0,
            pending: None,
            first_written,
            count_written: 0,
        })
    }

    /// Checks the answer if it is there, and asks for the next sector.
    fn step(&mut self, found: &Found) {
        if let Some((sector, is_write, since)) = self.pending {
            if self.disk.used_index() != self.available {
                if csr::time() - since > board().ticks(PATIENCE_US) {
                    say!("witness: no answer for sector {sector}");
                    found.lost.fetch_add(1, Ordering::Relaxed);
                    self.pending = None;
                }
                return;
            }
            self.disk.acknowledge();
            self.pending = None;
            self.judge(sector, is_write, found);
        }
        let last = self.disk.sectors() - self.first_written;
        let is_write = self.count_written < last && self.random.one_in(3);
        let sector = match is_write {
            true => self.first_written + self.count_written,
            false => self.random.below(self.first_written + self.count_written),
        };
        self.ask(sector, is_write);
    }

    /// The pattern that a sector holds.
    fn pattern(&self, sector: u64) -> Pattern {
        match sector < self.first_written {
            true => self.original,
            false => self.written,
        }
    }

    fn ask(&mut self, sector: u64, is_write: bool) {
        let pattern = self.pattern(sector);
        for offset in (0..SECTOR).step_by(8) {
            let word = match is_write {
                true => pattern.word(sector * SECTOR + offset),
                false => 0,
            };
            store(self.data + offset, word);
        }
        store(self.header, u64::from(is_write));
        store(self.header + 8, sector);
        store(self.header + 16, 0xff);
        let (descriptors, ring, _) = self.disk.places();
        let to_data = NEXT | if is_write { 0 } else { WRITE };
        let chain = [
            (self.header, 16, NEXT),
            (self.data, SECTOR, to_data),
            (self.header + 16, 1, WRITE),
        ];
        for (number, (address, bytes, flags)) in (0_u64..).zip(chain) {
            let at = descriptors + DESCRIPTOR_BYTES * number;
            store(at, self.disk.device_address(address));
            store(at + 8, bytes | u64::from(flags) << 32 | (number + 1) << 48);
        }
        store16(
            ring + 4 + 2 * (u64::from(self.available) % crate::block::ENTRIES),
            0,
        );
        self.available = self.available.wrapping_add(1);
        core::sync::atomic::fence(Ordering::Release);
        store16(ring + 2, self.available);
        self.disk.notify();
        self.pending = Some((sector, is_write, csr::time()));
    }

    /// Checks an answer: its status, and what was read.
    fn judge(&mut self, sector: u64, is_write: bool, found: &Found) {
        found.sectors.fetch_add(1, Ordering::Relaxed);
        let pattern = self.pattern(sector);
        let mut offsets = (0..SECTOR).step_by(8);
        let differs =
            |offset: u64| load(self.data + offset) != pattern.word(sector * SECTOR + offset);
        let status = load(self.header + 16) & 0xff;
        if status != 0 || offsets.any(differs) {
            say!(
                "witness: sector {sector} is wrong, status {status}, written {}",
                u8::from(is_write)
            );
            found.wrong_sectors.fetch_add(1, Ordering::Relaxed);
        }
        self.count_written += u64::from(is_write);
    }

    /// Waits for the last answer.
    fn end(&mut self, found: &Found) {
        let limit = csr::time() + board().ticks(PATIENCE_US);
        while self.disk.used_index() != self.available && csr::time() < limit {
            csr::take_interrupts();
        }
        if let Some((sector, is_write, _)) = self.pending.take() {
            match self.disk.used_index() == self.available {
                true => self.judge(sector, is_write, found),
                false => {
                    found.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}
