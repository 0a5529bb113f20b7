//! `fuzz`: random instructions with telling registers, for the trap handlers below.
//!
//! Everything is a function of `seed`, the hart and the program's number. A program runs in the sandbox with
//! the kernel's memory read-only, so that what it breaks is its own; what may go on for ever has a limit.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::sbi::NOTIFICATION_INTERRUPT;
use exerciser::arguments::Arguments;
use exerciser::csr::Host;
use exerciser::fuzz::{self, Limits};
use exerciser::random::Random;

use super::hostile::{self, plain_setting};
use super::{Exercise, Outcome, Verdict};
use crate::arch::paging::{IDENTITY_END, R, Space, U, W, WINDOW, X};
use crate::arch::sandbox::{Ending, MXR, SUM, Sandbox};
use crate::arch::sync::Lock;
use crate::board::{Board, board};
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts::{self, Hart};

pub const EXERCISE: Exercise = Exercise {
    name: "fuzz",
    parameters: &["seed", "count", "harts", "first", "trace"],
    run,
};

/// Frames that programs may write.
const SCRAP_FRAMES: u64 = 4;
/// Gigabytes of the upper half that show what is not ours.
const WINDOWS: u64 = 32;

/// Causes that a hart without the hypervisor extension has (privileged specification, table "Supervisor
/// cause register values"), and those of 20 to 23, which it has not.
const PLAIN_CAUSES: u64 = 0b1011_0011_1111_1111;

/// In a cause: an interrupt, not an exception.
const INTERRUPT: u64 = 1 << 63;

/// Supervisor software, timer, external and counter-overflow interrupts, by their numbers.
const OWN_INTERRUPTS: u64 = 1 << 1 | 1 << 5 | 1 << 9 | 1 << 13;

/// Counts of outcomes by kind.
#[derive(Debug)]
struct Tally {
    completed: AtomicU64,
    timed_out: AtomicU64,
    causes: [AtomicU64; 64],
    strange: AtomicU64,
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let count = arguments.number("count", 100_000, 1, 1 << 48)?;
    let first = arguments.number("first", 0, 0, 1 << 48)?;
    let trace = arguments.number("trace", 0, 0, 1)? == 1;
    let harts = super::harts(arguments)?;
    let host = hostile::host(arguments)?;
    if harts::open_sandboxes(harts).is_none() {
        crate::start::fail(format_args!("not enough memory for sandboxes"));
    }
    say!("fuzz seed={seed} count={count} harts={harts} host={host:?}");
    let tally = Tally::new();
    let digests = Lock::new(0u64);
    harts::run(harts, &|hart| {
        let Some(mut fuzzer) = Fuzzer::new(hart, host) else {
            crate::start::fail(format_args!("not enough memory for translation tables"));
        };
        let mut digest = 0u64;
        for number in first..first.saturating_add(count) {
            // Each program has a stream of its own: any one can be run again alone by `first` and `count`.
            let random = Random::stream(seed ^ (hart.index() as u64) << 56, number);
            let ending = fuzzer.step(random, trace.then_some(number));
            digest = digest.rotate_left(5) ^ tally.count(host, ending, number, hart);
        }
        *digests.lock() ^= digest.rotate_left(hart.index() as u32);
        crate::interrupts::open();
    });
    // What the programs sent to the UART ends here.
    crate::console::write(b"\n");
    for (cause, hits) in tally.causes.iter().enumerate() {
        let hits = hits.load(Ordering::Relaxed);
        if hits > 0 {
            say!("fuzz cause={cause} count={hits}");
        }
    }
    let strange = tally.strange.load(Ordering::Relaxed);
    say!(
        "fuzz seed={seed} programs={} completed={} timed-out={} strange={strange} digest={:016x}",
        count * harts as u64,
        tally.completed.load(Ordering::Relaxed),
        tally.timed_out.load(Ordering::Relaxed),
        *digests.lock(),
    );
    Ok(Verdict::of(strange == 0))
}

impl Tally {
    const fn new() -> Self {
        Self {
            completed: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            causes: [const { AtomicU64::new(0) }; 64],
            strange: AtomicU64::new(0),
        }
    }

    /// Counts an ending; returns what stands for it in the digest.
    fn count(&self, host: Host, ending: Ending, number: u64, hart: &Hart) -> u64 {
        match ending {
            Ending::Completed => {
                self.completed.fetch_add(1, Ordering::Relaxed);
                1
            }
            Ending::TimedOut { .. } => {
                self.timed_out.fetch_add(1, Ordering::Relaxed);
                2
            }
            Ending::Trapped { cause, value, pc } => {
                if let Some(slot) = self.causes.get(cause as usize) {
                    slot.fetch_add(1, Ordering::Relaxed);
                }
                if is_strange(host, ending) {
                    self.strange.fetch_add(1, Ordering::Relaxed);
                    say!(
                        "fuzz hart={} program={number}: scause={cause:#x} stval={value:#x} sepc={pc:#x}",
                        hart.index()
                    );
                }
                3 + cause
            }
        }
    }
}

/// Tests whether a program ended in what a hart without the hypervisor extension does not have.
pub(super) fn is_strange(host: Host, ending: Ending) -> bool {
    let Ending::Trapped { cause, .. } = ending else {
        return false;
    };
    // A program may enable and raise the supervisor's own interrupts, and the one that the
    // hypervisor adds: writing sie and sip is enough (AIA specification, "Virtual interrupts").
    let own = match host {
        Host::VirtualMachine => OWN_INTERRUPTS | 1 << NOTIFICATION_INTERRUPT,
        _ => OWN_INTERRUPTS,
    };
    let code = cause & !INTERRUPT;
    let causes = if code == cause { PLAIN_CAUSES } else { own };
    let is_known = code < 64 && causes >> code & 1 == 1;
    !is_known && host != Host::WithHypervisorExtension
}

/// One hart's fuzzer.
#[derive(Debug)]
pub(super) struct Fuzzer {
    sandbox: Sandbox,
    supervisor: Space,
    user: Space,
    scrap: u64,
    host: Host,
}

impl Fuzzer {
    pub(super) fn new(hart: &Hart, host: Host) -> Option<Self> {
        let sandbox = Sandbox::of(hart);
        let scrap = frames::take(SCRAP_FRAMES)?;
        let space = |user: u64| -> Option<Space> {
            let space = Space::new()?;
            map_memory(space, sandbox, scrap, user)?;
            map_rest(space, host, user)?;
            Some(space)
        };
        Some(Self {
            sandbox,
            supervisor: space(0)?,
            user: space(U)?,
            scrap,
            host,
        })
    }

    pub(super) fn step(&mut self, mut random: Random, trace: Option<u64>) -> Ending {
        let limits = Limits {
            pc: self.sandbox.program(),
            forbidden: (self.sandbox.page(), self.sandbox.data() + FRAME),
            has_hypervisor_extension: self.host == Host::WithHypervisorExtension,
        };
        let mut setting = plain_setting();
        for register in setting.registers.iter_mut().skip(1) {
            *register = self.value(&mut random);
        }
        if random.one_in(2) {
            setting.registers[17] = random.pick(&[
                riscv::sbi::BASE,
                riscv::sbi::TIME,
                riscv::sbi::IPI,
                riscv::sbi::RFENCE,
                riscv::sbi::HSM,
                riscv::sbi::SRST,
                riscv::sbi::PMU,
                riscv::sbi::DBCN,
                riscv::sbi::SUSP,
                riscv::sbi::STA,
                riscv::sbi::SSE,
                riscv::sbi::FWFT,
                riscv::sbi::DBTR,
                0,
                3,
                4,
                5,
                6,
                7,
            ]);
            setting.registers[16] = random.below(8);
        }
        let program = fuzz::program(&mut random, &setting.registers, &limits);
        setting.user = random.one_in(4);
        setting.satp = if setting.user {
            self.user.satp(1)
        } else {
            self.supervisor.satp(2)
        };
        setting.status = random.pick(&[0, SUM, MXR, SUM | MXR]);
        setting.limit = if program.may_go_on {
            board().ticks(300)
        } else {
            u64::MAX
        };
        if program.calls && !setting.user {
            // The environment does not know our page tables: it may write what a call names.
            let (start, end) = board().memory;
            for register in setting.registers.iter_mut().skip(10).take(6) {
                if (start..end).contains(register) {
                    *register = self.scrap + (*register & (FRAME - 8));
                }
            }
            let is_fatal =
                setting.registers[17] == riscv::sbi::DBCN && self.host != Host::VirtualMachine;
            if is_fatal || setting.registers[17] == riscv::sbi::HSM && setting.registers[16] == 0 {
                setting.registers[17] = riscv::sbi::BASE;
            }
        }
        if let Some(number) = trace {
            say!(
                "fuzz program={number} user={} parcels={:04x?}",
                setting.user,
                program.parcels()
            );
        }
        self.sandbox.run(program.parcels(), &mut setting)
    }

    /// A register's value: addresses of every class, patterns, anything.
    fn value(&self, random: &mut Random) -> u64 {
        let board: &Board = board();
        match random.below(12) {
            0 => 0,
            1 => u64::MAX,
            2 => self.scrap + random.below(SCRAP_FRAMES * FRAME),
            3 => self.sandbox.program() + random.below(64),
            4 => WINDOW + random.below(WINDOWS << 30),
            5 => board.uart + random.below(16),
            6 => {
                random.pick(&[board.aplic, board.files.base, board.slots[0].address])
                    + (random.below(0x8000) & !3)
            }
            7 => board.memory.0 + random.below(board.memory.1 - board.memory.0),
            8 => random.below(IDENTITY_END),
            9 => 1 << random.below(64),
            10 => random.next() >> random.below(64),
            _ => random.next(),
        }
    }
}

/// Our memory: all readable; the sandbox's code and program executable; only its data, which the way out
/// writes, and scrap writable.
fn map_memory(space: Space, sandbox: Sandbox, scrap: u64, user: u64) -> Option<()> {
    let (start, end) = board().memory;
    let program = sandbox.page() + 2 * FRAME;
    let mut pieces = [
        (sandbox.page(), FRAME, R | X),
        (sandbox.data(), FRAME, R | W),
        (program, FRAME, R | X | user),
        (scrap, SCRAP_FRAMES * FRAME, R | W | user),
    ];
    pieces.sort_unstable();
    let mut from = start;
    for (address, length, flags) in pieces {
        space.map(from, from, address - from, R)?;
        space.map(address, address, length, flags)?;
        from = address + length;
    }
    space.map(from, from, end - from, R)
}

/// Maps addresses that are not our memory, where a hypervisor is below. Where it is the computer itself, our own devices
/// alone (not the UART, by which the firmware prints) and addresses that are absent there.
fn map_rest(space: Space, host: Host, user: u64) -> Option<()> {
    let board = board();
    let (start, end) = board.memory;
    let flags = R | W | X | user;
    if host == Host::VirtualMachine {
        space.map(0, 0, start, flags)?;
        space.map(end, end, IDENTITY_END - end, flags)?;
    } else {
        for (address, length) in [(board.aplic, 0x8000), (board.files.base, FRAME)] {
            if address != 0 {
                space.map(address, address, length, R | W | user)?;
            }
        }
    }
    for index in 0..WINDOWS {
        // One gigabyte each of the physical space from 2^44 to 2^50, spread by powers of two.
        let physical = (1u64 << (44 + index % 6)) + ((index / 6) << 30);
        space.map(WINDOW + (index << 30), physical, 1 << 30, flags)?;
    }
    Some(())
}
