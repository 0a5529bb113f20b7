//! `storm`: a guest that makes its devices, and so the hypervisor, work as hard as it can beside a neighbour.
//!
//! It keeps the ring of its disk full and sleeps, so that what it asked for is done while others have the harts.

use core::sync::atomic::{Ordering, fence};

use exerciser::arguments::Arguments;

use super::{Exercise, Outcome, Verdict};
use crate::arch::csr;
use crate::arch::memory::{store, store16};
use crate::arch::{sbi, team};
use crate::block::{Disk, ENTRIES, REQUESTS};
use crate::board::board;
use crate::console::{self, say};
use crate::frames::{self, FRAME};
use crate::harts;
use crate::interrupts::BLOCK;
use exerciser::workload::Trigger;
use riscv::sbi::{BASE, IPI, SEND_IPI, base};
use riscv::virtio::queue::{DESCRIPTOR_BYTES, NEXT, WRITE};

pub const EXERCISE: Exercise = Exercise {
    name: "storm",
    parameters: &[
        "of",
        "duration-ms",
        "sleep-us",
        "depth",
        "kib",
        "interrupts",
    ],
    run,
};

/// Action that the guest repeats as often as it can.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Reads.
    Reads,
    /// A read, then requests that the device has to refuse, in turn.
    Refused,
    /// Notifications of a queue, beside reads.
    Notifications,
    /// Interrupts between its own harts.
    Kicks,
    /// Lines on its console.
    Console,
    /// Calls of the firmware.
    Calls,
}

const KINDS: [(&str, Kind); 6] = [
    ("reads", Kind::Reads),
    ("refused", Kind::Refused),
    ("notifications", Kind::Notifications),
    ("kicks", Kind::Kicks),
    ("console", Kind::Console),
    ("calls", Kind::Calls),
];

/// The chain whose request is beyond every disk's end; those before it read.
const REFUSED_CHAIN: u64 = REQUESTS as u64 - 1;
/// One request in so many is a read where most are refused.
const READ_ONE_IN: u64 = 16;
/// Descriptors of a chain: header, data, status (virtio 1.2, §5.2.6).
const LENGTH: u64 = 3;
/// Rounds between two looks at the clock where the guest does not sleep.
const ROUNDS: u64 = 64;

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let kind = arguments.choice("of", Kind::Reads, &KINDS)?;
    let duration = arguments.number("duration-ms", 100, 1, 1 << 40)?;
    let sleep = arguments.number("sleep-us", 1000, 0, 1 << 30)?;
    let depth = arguments.number("depth", ENTRIES, 1, ENTRIES)?;
    let kib = arguments.number("kib", 4, 1, 1 << 20)?;
    let interrupts = arguments.choice("interrupts", true, &[("yes", true), ("no", false)])?;
    let end = csr::time() + board().ticks(duration * 1000);
    let done = match kind {
        Kind::Kicks => send_kicks(end),
        Kind::Console => print_lines(end),
        Kind::Calls => call_firmware(end),
        Kind::Reads | Kind::Refused | Kind::Notifications => {
            match Driver::new(kind, depth, kib, interrupts) {
                Ok(mut driver) => driver.run(end, board().ticks(sleep)),
                Err(why) => {
                    say!("storm: {why}");
                    return Ok(Verdict::Fail);
                }
            }
        }
    };
    say!("storm over: done={done}");
    Ok(Verdict::of(done > 0))
}

/// Sends interrupts to this hart until `end`, by SBI.
fn send_kicks(end: u64) -> u64 {
    let mut sent = 0;
    let own = team::current().id();
    while csr::time() < end {
        for _ in 0..ROUNDS {
            sbi::call(IPI, SEND_IPI, [1, own, 0, 0, 0, 0]);
            csr::take_interrupts();
        }
        sent += ROUNDS;
    }
    sent
}

/// Prints until `end`.
fn print_lines(end: u64) -> u64 {
    let mut printed = 0;
    while csr::time() < end {
        console::write(b"exerciser: storm of lines\n");
        printed += 1;
    }
    printed
}

/// Calls the firmware until `end`.
fn call_firmware(end: u64) -> u64 {
    let mut calls = 0;
    while csr::time() < end {
        for _ in 0..ROUNDS {
            sbi::call(BASE, base::SPECIFICATION_VERSION, [0; 6]);
        }
        calls += ROUNDS;
    }
    calls
}

/// A driver of the block device that only asks.
struct Driver {
    disk: Disk,
    kind: Kind,
    /// Requests under way at most.
    depth: u16,
    /// Index of the available ring.
    available: u16,
}

impl Driver {
    fn new(kind: Kind, depth: u64, kib: u64, interrupts: bool) -> Result<Self, &'static str> {
        let disk = Disk::find(Trigger::Level, false, false)?;
        let (descriptors, _, _) = disk.places();
        let headers = frames::take(1).ok_or("memory is out")?;
        let data = frames::take((kib * 1024).div_ceil(FRAME)).ok_or("memory is out")?;
        let sectors = kib * 2;
        let places = (disk.sectors() / sectors).max(1);
        for chain in 0..=REFUSED_CHAIN {
            let header = headers + 32 * chain;
            store(header, 0);
            let sector = match chain {
                REFUSED_CHAIN => u64::MAX >> 10,
                chain => chain % places * sectors,
            };
            store(header + 8, sector);
            let first = LENGTH * chain;
            let describe = |number: u64, address: u64, bytes: u64, flags: u16| {
                let at = descriptors + DESCRIPTOR_BYTES * number;
                store(at, disk.device_address(address));
                store(at + 8, bytes | u64::from(flags) << 32 | (number + 1) << 48);
            };
            describe(first, header, 16, NEXT);
            describe(first + 1, data, kib * 1024, NEXT | WRITE);
            describe(first + 2, header + 16, 1, WRITE);
        }
        if interrupts {
            disk.route(team::current(), BLOCK);
        }
        Ok(Self {
            disk,
            kind,
            depth: depth as u16,
            available: 0,
        })
    }

    /// Keeps the ring full until `end`. Returns the requests that have ended.
    fn run(&mut self, end: u64, sleep: u64) -> u64 {
        let mut done = 0;
        let mut seen = self.disk.used_index();
        while csr::time() < end {
            self.fill();
            self.disk.notify();
            if self.kind == Kind::Notifications {
                (0..ROUNDS).for_each(|_| self.disk.notify());
            } else if sleep != 0 {
                harts::sleep_until(csr::time() + sleep);
            }
            self.disk.acknowledge();
            let used = self.disk.used_index();
            done += u64::from(used.wrapping_sub(seen));
            seen = used;
        }
        done
    }

    /// Makes as much available as may be under way.
    fn fill(&mut self) {
        let (_, ring, _) = self.disk.places();
        let used = self.disk.used_index();
        while self.available.wrapping_sub(used) < self.depth {
            let number = u64::from(self.available);
            let chain = match self.kind {
                Kind::Refused if !number.is_multiple_of(READ_ONE_IN) => REFUSED_CHAIN,
                Kind::Refused => number / READ_ONE_IN % REFUSED_CHAIN,
                _ => number % REFUSED_CHAIN,
            };
            store16(ring + 4 + 2 * (number % ENTRIES), (LENGTH * chain) as u16);
            self.available = self.available.wrapping_add(1);
        }
        fence(Ordering::Release);
        store16(ring + 2, self.available);
    }
}
