//! `mixture`: events of every class at the edge of validity, in one stream for each hart.
//!
//! An event is a function of `seed`, hart and number, whatever was left out before it: `first`, `events` and `classes` choose some of them.
//! An access runs in a sandbox, so that it may end in any exception that a guest's hart has. The exercise fails where another one arrives.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::sbi::{EXTENSION, Function};
use exerciser::arguments::Arguments;
use exerciser::csr::Host;
use exerciser::instruction::{A0, A1, ACCESSES, ECALL};
use exerciser::random::Random;
use exerciser::sbi::ends_run;
use exerciser::workload::Trigger;
use riscv::sbi::{BASE, CPPC, DBCN, HSM, IPI, NACL, PMU, RFENCE, SRST, STA, SUSP, TIME};

use super::fuzz::{Fuzzer, is_strange};
use super::hostile::{self, plain_setting, run_word};
use super::{Exercise, Outcome, Verdict, descriptors};
use crate::arch::paging::{IDENTITY_END, R, Space, U, W, WINDOW, X};
use crate::arch::sandbox::Ending;
use crate::arch::sync::Lock;
use crate::arch::{csr, imsic, memory, sbi};
use crate::block::Disk;
use crate::board::board;
use crate::console::say;
use crate::frames::{self, FRAME};
use crate::harts::{self, Hart};

pub const EXERCISE: Exercise = Exercise {
    name: "mixture",
    parameters: &["seed", "events", "first", "classes", "harts", "trace"],
    run,
};

/// Kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Calls of the environment.
    Calls,
    /// Instructions and CSRs.
    Instructions,
    /// Registers of the guest's own devices.
    Devices,
    /// Addresses at the edges of memory and beyond.
    Addresses,
    /// Translation tables that name what is not the guest's.
    Tables,
    /// Fences, of this hart and of others.
    Fences,
    /// Rings of the disk.
    Rings,
    /// Pages that are given back.
    Pages,
    /// Interrupts of this hart and of others.
    Interrupts,
    /// Waits that a deadline ends.
    Waits,
}

const CLASSES: [(&str, Class); 10] = [
    ("calls", Class::Calls),
    ("instructions", Class::Instructions),
    ("devices", Class::Devices),
    ("addresses", Class::Addresses),
    ("tables", Class::Tables),
    ("fences", Class::Fences),
    ("rings", Class::Rings),
    ("pages", Class::Pages),
    ("interrupts", Class::Interrupts),
    ("waits", Class::Waits),
];

/// Frames that events may write and give back.
const SCRAP_FRAMES: u64 = 16;
/// Extensions that are called, with one function more than the specification has.
const EXTENSIONS: [(u64, u64); 13] = [
    (BASE, 8),
    (TIME, 2),
    (IPI, 2),
    (RFENCE, 8),
    (HSM, 5),
    (SRST, 2),
    (PMU, 10),
    (DBCN, 4),
    (SUSP, 2),
    (CPPC, 5),
    (NACL, 6),
    (STA, 2),
    (EXTENSION as u64, 16),
];
/// Longest wait in microseconds.
const WAIT_US: u64 = 40;
/// Identities of interrupts that mean nothing to the exerciser, and numbers that no interrupt file has.
const IDENTITIES: [u64; 6] = [0, 62, 63, 64, 2047, u32::MAX as u64];

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let seed = arguments.number("seed", 1, 0, u64::MAX)?;
    let events = arguments.number("events", 1000, 1, 1 << 40)?;
    let first = arguments.number("first", 0, 0, 1 << 40)?;
    let trace = arguments.number("trace", 0, 0, 1)? == 1;
    let harts = super::harts(arguments)?;
    let host = hostile::host(arguments)?;
    let chosen = arguments.get("classes").unwrap_or("");
    let is_chosen = |name: &str| chosen.is_empty() || chosen.split(',').any(|one| one == name);
    if harts::open_sandboxes(harts).is_none() {
        crate::start::fail(format_args!("not enough memory for sandboxes"));
    }
    let disk = Disk::find(Trigger::Level, false, true).ok().map(Lock::new);
    let (done, strange) = (AtomicU64::new(0), AtomicU64::new(0));
    harts::run(harts, &|hart| {
        let Some(mut mixture) = Mixture::new(hart, host, harts, disk.as_ref()) else {
            crate::start::fail(format_args!("not enough memory for a mixture"));
        };
        csr::set_interrupt_enables(0);
        for number in first..first.saturating_add(events) {
            let mut random = Random::stream(seed ^ (hart.index() as u64) << 56, number);
            let index = random.below(CLASSES.len() as u64) as usize;
            let Some((name, class)) = CLASSES.get(index).filter(|(name, _)| is_chosen(name)) else {
                continue;
            };
            if trace {
                say!("mixture hart={} event={number} {name}", hart.index());
            }
            done.fetch_add(1, Ordering::Relaxed);
            if let Some(ending) = mixture.event(*class, random)
                && is_strange(host, ending)
            {
                strange.fetch_add(1, Ordering::Relaxed);
                say!(
                    "mixture hart={} event={number} {name}: {ending:x?}",
                    hart.index()
                );
            }
        }
        harts::set_timer(u64::MAX);
        if board().files.base != 0 {
            imsic::set_pending(0);
        }
        csr::clear_pending(csr::SOFTWARE);
        crate::interrupts::open();
    });
    // What the events sent to the UART ends here.
    crate::console::write(b"\n");
    let (done, strange) = (
        done.load(Ordering::Relaxed),
        strange.load(Ordering::Relaxed),
    );
    say!("mixture seed={seed} done={done} strange={strange}");
    Ok(Verdict::of(strange == 0))
}

/// One hart's events.
struct Mixture<'a> {
    hart: &'static Hart,
    harts: usize,
    scrap: u64,
    fuzzer: Fuzzer,
    space: Space,
    disk: Option<&'a Lock<Disk>>,
}

impl<'a> Mixture<'a> {
    fn new(
        hart: &'static Hart,
        host: Host,
        harts: usize,
        disk: Option<&'a Lock<Disk>>,
    ) -> Option<Self> {
        let space = Space::new()?;
        space.map(0, 0, IDENTITY_END, R | W | X)?;
        Some(Self {
            hart,
            harts,
            scrap: frames::take_aligned(SCRAP_FRAMES, FRAME)?,
            fuzzer: Fuzzer::new(hart, host)?,
            space,
            disk,
        })
    }

    /// One event; how it ended, if it was an instruction in the sandbox.
    fn event(&mut self, class: Class, mut random: Random) -> Option<Ending> {
        let random = &mut random;
        match class {
            Class::Calls => return self.call(random),
            Class::Instructions => return Some(self.fuzzer.step(random.clone(), None)),
            Class::Devices => {
                let address = self.device_register(random);
                return Some(self.access(address, random));
            }
            Class::Addresses => {
                let address = self.edge(random);
                // A store to the exerciser itself would be its own end.
                let (start, end) = board().memory;
                let is_own = (start.wrapping_sub(8)..end).contains(&address);
                let address = if is_own {
                    self.in_scrap(random)
                } else {
                    address
                };
                return Some(self.access(address, random));
            }
            Class::Tables => return self.table(random),
            Class::Fences => self.fence(random),
            Class::Rings => {
                if let Some(disk) = self.disk {
                    descriptors::event(&mut disk.lock(), random);
                }
            }
            Class::Pages => self.give_pages_back(random),
            Class::Interrupts => self.interrupt(random),
            Class::Waits => self.wait(random),
        }
        None
    }

    fn in_scrap(&self, random: &mut Random) -> u64 {
        self.scrap + random.below(SCRAP_FRAMES * FRAME - 8)
    }

    /// An address or a number at an edge.
    fn edge(&self, random: &mut Random) -> u64 {
        let board = board();
        let (start, end) = board.memory;
        match random.below(10) {
            0 => start.wrapping_sub(random.below(17)),
            1 => end.wrapping_sub(random.below(17)),
            2 => end + random.below(1 << 24),
            3 => start.wrapping_sub(random.below(1 << 24)),
            4 => (1_u64 << random.below(64)).wrapping_sub(random.below(3)),
            5 => random.below(9),
            6 => u64::MAX - random.below(4097),
            7 => random
                .pick(&[
                    board.uart,
                    board.aplic,
                    board.files.base,
                    board.slots[0].address,
                ])
                .wrapping_sub(random.below(9)),
            8 => self.in_scrap(random),
            _ => random.next() >> random.below(64),
        }
    }

    /// A call with arguments at their edges, which may do anything but end the run.
    fn call(&self, random: &mut Random) -> Option<Ending> {
        let index = random.below(EXTENSIONS.len() as u64) as usize;
        let (extension, functions) = EXTENSIONS.get(index).copied().unwrap_or_default();
        let function = random.below(functions);
        let mut setting = plain_setting();
        for register in setting.registers.iter_mut().skip(A0 as usize).take(6) {
            *register = match random.one_in(2) {
                true => self.in_scrap(random) & !7,
                false => self.edge(random),
            };
        }
        let (start, end) = board().memory;
        for register in setting.registers.iter_mut().skip(A0 as usize).take(6) {
            // The environment may write what a call names, and take pages that are given back.
            if (start..end).contains(register) {
                *register = self.scrap + (*register & (FRAME - 8));
            }
        }
        let first = setting.registers.get(A0 as usize).copied().unwrap_or(0);
        let gives_pages =
            extension == EXTENSION as u64 && function == Function::ReturnPages.id() as u64;
        if ends_run(extension, function, first) || gives_pages {
            return None;
        }
        setting.registers[16] = function;
        setting.registers[17] = extension;
        Some(run_word(ECALL, &mut setting))
    }

    /// A register of a device of this guest, or what lies between two.
    fn device_register(&self, random: &mut Random) -> u64 {
        let board = board();
        let slots = board.slot_count.min(board.slots.len()) as u64;
        let slot = board.slots.get(random.below(slots) as usize);
        let (base, size) = match random.below(6) {
            0 => (board.aplic, 0x8000),
            1 => (board.uart, 0x100),
            2 => (board.clock.address, 0x1000),
            3 => (self.hart.page(), 0x1000),
            _ => (slot.map_or(0, |slot| slot.address), 0x200),
        };
        let offset = match random.below(4) {
            0 => random.below(size),
            1 => size - random.below(9),
            2 => random.below(0x120) & !3,
            _ => 0x30 + 4 * random.below(28),
        };
        base + offset
    }

    /// A load or store of any width.
    fn access(&self, address: u64, random: &mut Random) -> Ending {
        let index = random.below(ACCESSES.len() as u64) as usize;
        let word = ACCESSES.get(index).map_or(ECALL, |access| access.1);
        let mut setting = plain_setting();
        setting.registers[A0 as usize] = address;
        // A device may take it for the address of a ring.
        setting.registers[A1 as usize] = match random.below(4) {
            0 => self.scrap,
            1 => random.below(16),
            2 => u64::MAX,
            _ => 1 << random.below(28),
        };
        run_word(word, &mut setting)
    }

    /// An access by an entry of any form.
    fn table(&self, random: &mut Random) -> Option<Ending> {
        let level = random.below(3) as usize;
        let at = WINDOW + (random.below(4) << 30) + ((level as u64) << 21);
        let entry = self.space.entry(at, level)?;
        let (start, end) = board().memory;
        let target = self.edge(random);
        let is_own = (start..end).contains(&target);
        let physical = if is_own { self.scrap } else { target };
        let flags = random.below(256);
        let flags = match random.one_in(2) {
            true => flags,
            false => R | W | X | (flags & U),
        };
        memory::store(entry, Space::leaf(physical, 0) & !0xff | flags | 1);
        let ending = {
            let mut setting = plain_setting();
            setting.satp = self.space.satp(random.below(4));
            setting.registers[A0 as usize] = at + (random.below(FRAME) & !7);
            // A store may reach a table that the entry names: none is of the exerciser.
            let index = random.below(9) as usize;
            let word = ACCESSES.get(index).map_or(ECALL, |access| access.1);
            run_word(word, &mut setting)
        };
        memory::store(entry, 0);
        Some(ending)
    }

    fn fence(&self, random: &mut Random) {
        if random.one_in(3) {
            let address = random.one_in(2).then(|| self.edge(random));
            let space = random.one_in(2).then(|| random.below(1 << 16));
            return csr::fence_translation(address, space);
        }
        let mask = self.edge(random) & if random.one_in(2) { 15 } else { u64::MAX };
        let edge = self.edge(random);
        let base = random.pick(&[0, 0, self.hart.id(), u64::MAX, edge]);
        let (start, size) = (self.edge(random), self.edge(random));
        let arguments = [mask, base, start, size, random.below(4), 0];
        sbi::call(RFENCE, random.below(8), arguments);
    }

    fn give_pages_back(&self, random: &mut Random) {
        let at = match random.below(8) {
            0 => board().memory.1 - FRAME * random.below(2),
            1 => self.in_scrap(random),
            _ => self.scrap + FRAME * random.below(SCRAP_FRAMES),
        };
        let left = (self.scrap + SCRAP_FRAMES * FRAME).saturating_sub(at);
        let bytes = match random.below(8) {
            0 if at > board().memory.1 - FRAME => FRAME,
            1 => random.below(FRAME),
            2 => 0,
            _ => FRAME * random.below(left / FRAME + 1),
        };
        let is_foreign = at >= board().memory.1 - FRAME;
        let bytes = if is_foreign { 2 * FRAME } else { bytes };
        let function = Function::ReturnPages.id() as u64;
        sbi::call(EXTENSION as u64, function, [at, bytes, 0, 0, 0, 0]);
        memory::store(self.in_scrap(random) & !7, random.next());
    }

    fn interrupt(&self, random: &mut Random) {
        let other = random.below(self.harts as u64) as usize;
        let page = harts::all(self.harts).get(other).map_or(0, Hart::page);
        if page != 0 && random.one_in(2) {
            return imsic::send(page, random.pick(&IDENTITIES));
        }
        let edge = self.edge(random);
        let base = random.pick(&[0, self.hart.id(), u64::MAX, edge]);
        sbi::call(IPI, 0, [self.edge(random), base, 0, 0, 0, 0]);
    }

    /// A wait that ends at a deadline, by WFI or by a suspension.
    fn wait(&self, random: &mut Random) {
        harts::set_timer(csr::time() + board().ticks(random.below(WAIT_US)));
        csr::set_interrupt_enables(csr::TIMER);
        if random.one_in(2) {
            csr::wait_for_interrupt();
        } else {
            let kind = random.pick(&[0, 0, 1, 0x7fff_ffff, 0x1000_0000]);
            sbi::call(HSM, riscv::sbi::hart_state::SUSPEND, [kind, 0, 0, 0, 0, 0]);
        }
        csr::set_interrupt_enables(0);
        harts::set_timer(u64::MAX);
    }
}
