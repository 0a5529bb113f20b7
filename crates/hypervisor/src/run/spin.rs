//! Reservation wait: what a spinning vCPU waits for, and whether it has come.
//!
//! A guest that leaves at WRS.NTO has told by the code in front of it which word it watches and what it last saw there.
//! While the word is unchanged, giving it the hart again would be futile. All of this is a hint: a wrong guess costs
//! time, never correctness, because WRS.NTO may end for any reason (Zawrs).

use core::sync::atomic::{AtomicU64, Ordering};

use crate::hart::capabilities::Capability;
use crate::hart::decode::{Register, Width};
use crate::hart::instruction::{LENGTH, WatchedWord, ticket};
use crate::hart::unprivileged;
use crate::hart::{
    self,
    csr::{self, number, status},
};
use crate::memory::address::GuestPhysical;
use crate::memory::walk;
use crate::run::harts;
use crate::vm::Vm;
use crate::vm::vcpu::Registers;

/// How often a hart without Zawrs pauses between two looks at a word.
const PAUSES: u32 = 16;

/// A word of a guest's memory, and what the guest waits to see there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    host: u64,
    wide: bool,
    seen: u64,
    /// For a ticket lock, the ticket: the wait is over when the lower half of the word shows it.
    ticket: Option<u16>,
    /// A test has found that it has come. It may have changed back since: words are used again.
    came: bool,
}

/// What a look at the word in front of a WRS.NTO tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// What the guest waits for has come already: it need not wait.
    Over(Word),
    /// It waits for this word to change.
    On(Word),
    /// The code is not of the known pattern, or the word cannot be reached.
    Unknown,
}

impl Word {
    /// The word as it is now, as the guest's load would have given it.
    fn value(self) -> u64 {
        // SAFETY: `host` was checked to lie in the VM's memory, aligned to its width, and that memory is never given back.
        unsafe {
            if self.wide {
                (self.host as *const u64).read_volatile()
            } else {
                (self.host as *const i32).read_volatile() as i64 as u64
            }
        }
    }

    /// Whether what the guest waits for has come: its ticket, or another value than it saw.
    #[must_use]
    pub fn has_come(self) -> bool {
        self.is_over_at(self.value())
    }

    /// Tests whether what the guest waits for has come, and remembers it.
    pub fn test(&mut self) -> bool {
        self.came |= self.has_come();
        self.came
    }

    /// Whether a test has found that it has come.
    #[must_use]
    pub fn was_seen_to_come(self) -> bool {
        self.came
    }

    fn is_over_at(self, value: u64) -> bool {
        match self.ticket {
            Some(ticket) => value as u16 == ticket,
            None => value != self.seen,
        }
    }

    /// For a ticket lock: the lock, and the ticket that the vCPU waits with.
    #[must_use]
    pub fn place(self) -> Option<Place> {
        Some(Place::new(self.host, self.ticket?))
    }

    /// For a ticket lock: whether nobody is between whoever is served and this vCPU.
    #[must_use]
    pub fn is_next(self) -> bool {
        self.ticket
            .is_some_and(|ticket| ticket.wrapping_sub(1) == self.value() as u16)
    }

    /// For a ticket lock: the lock, and the ticket that is served, as the guest saw it.
    #[must_use]
    pub fn served(self) -> Option<Place> {
        let _ = self.ticket?;
        Some(Place::new(self.host, self.seen as u16))
    }

    /// Stalls until the word may have changed, at most for the short time of the hart's WRS.STO: WRS.NTO need not end here,
    /// where nobody traps it.
    pub fn stall(self) {
        let value = self.value();
        if self.is_over_at(value) {
            return;
        }
        if !harts::current().has(Capability::WaitOnReservation) {
            // A hint, which every hart has: PAUSE is a fence that orders nothing (Zihintpause).
            (0..PAUSES).for_each(|_| core::hint::spin_loop());
            return;
        }
        // SAFETY: the hart has Zawrs, and `host` is that of an aligned word of the VM's memory (see `value`).
        unsafe {
            if self.wide {
                hart::stall_on_doubleword(self.host, value);
            } else {
                hart::stall_on_word(self.host, value);
            }
        }
    }
}

/// A ticket of a ticket lock.
///
/// The lock is known by bits 2 to 49 of the host's address of its word, which is aligned to 4 bytes. Places of vCPUs of one VM
/// alone are compared, and its memory is one region of the host's, far below 2^50 bytes: two words in it differ in these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u64);

impl Place {
    const fn new(lock: u64, ticket: u16) -> Self {
        Self((lock >> 2) << 16 | ticket as u64)
    }
}

/// The place that a vCPU waited at last. Lock and ticket are in one word, so that another hart never reads the one of now with
/// the other of before. Nothing else hangs on the order in which harts see it: what it tells is a hint.
#[derive(Debug, Default)]
pub struct LastPlace(AtomicU64);

impl LastPlace {
    /// Remembers a place.
    pub fn set(&self, place: Place) {
        self.0.store(place.0, Ordering::Relaxed);
    }

    /// Whether it is this one. 0, where there was none yet, is no word of a VM's memory: the firmware's lies below that.
    #[must_use]
    pub fn is(&self, place: Place) -> bool {
        self.0.load(Ordering::Relaxed) == place.0
    }
}

/// The wait that a vCPU is in, as its spin exits tell: for the performance monitor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spinning {
    /// The word and, if known, the ticket; 0 stands for a word that is not known.
    at: Option<(u64, Option<u16>)>,
    exits: u32,
    /// How often an interrupt was the reason to go on.
    interrupts: u32,
    /// What it waited for has come: another exit at the same word, without a ticket, is another wait.
    over: bool,
}

impl Spinning {
    /// A spin exit. If it begins a wait, returns how many exits the wait before had, 0 where there was none, and how many
    /// of them followed an interrupt.
    pub fn exit(&mut self, spin: Spin) -> Option<(u32, u32)> {
        let (at, over) = match spin {
            Spin::Over(word) => ((word.host, word.ticket), true),
            Spin::On(word) => ((word.host, word.ticket), false),
            Spin::Unknown => ((0, None), false),
        };
        let goes_on = self.at == Some(at) && (at.1.is_some() || !self.over);
        let before = (self.exits, self.interrupts);
        self.over = over;
        self.at = Some(at);
        if goes_on {
            self.exits = self.exits.saturating_add(1);
        } else {
            (self.exits, self.interrupts) = (1, 0);
        }
        (!goes_on).then_some(before)
    }

    /// How many exits the wait has had so far.
    #[must_use]
    pub const fn exits(self) -> u32 {
        self.exits
    }

    /// What the vCPU waited for has come.
    pub fn has_come(&mut self) {
        self.over = true;
    }

    /// The vCPU is dispatched again for an interrupt.
    pub fn interrupted(&mut self) {
        self.interrupts = self.interrupts.saturating_add(1);
    }
}

/// Looks at what the vCPU that has just left this hart at a WRS.NTO waits for. Its program counter still points there.
#[must_use]
pub fn look(vm: &Vm, registers: &Registers) -> Spin {
    let known = watched(registers).and_then(|watched| {
        let size = if watched.wide { 8 } else { 4 };
        if watched.address % size != 0 {
            return None;
        }
        let vsatp = csr::read::<{ number::VSATP }>();
        let reader = reader(registers);
        let read = |at| vm.read_doubleword(at);
        let physical = walk::translate(vsatp, watched.address, reader, read)?;
        let host = vm.host_address(physical, size)?;
        Some(Word {
            host,
            wide: watched.wide,
            seen: watched.seen,
            ticket: watched.ticket,
            came: false,
        })
    });
    judge(known)
}

/// On whose behalf the word in front of a WRS.NTO is read: as the load before it was, if there was one. A program may have
/// jumped there with any address.
fn reader(registers: &Registers) -> walk::Reader {
    let fields = csr::read::<{ number::VSSTATUS }>();
    walk::Reader {
        user: registers.context.in_user_mode(),
        reads_user_pages: fields & status::SUM != 0,
        reads_code: fields & status::MXR != 0,
    }
}

/// What a vCPU waits for that says so itself, by the spin call: the guest-physical address of a word of 32 bits, the
/// value that it saw there, and its ticket if it has one.
#[must_use]
pub fn told(vm: &Vm, address: u64, seen: u64, ticket: u64) -> Spin {
    let host = (address.is_multiple_of(4))
        .then(|| vm.host_address(GuestPhysical::new(address), 4))
        .flatten();
    judge(host.map(|host| Word {
        host,
        wide: false,
        seen: i64::from(seen as i32) as u64,
        ticket: u16::try_from(ticket).ok(),
        came: false,
    }))
}

fn judge(word: Option<Word>) -> Spin {
    match word {
        Some(word) if word.has_come() => Spin::Over(word),
        Some(word) => Spin::On(word),
        None => Spin::Unknown,
    }
}

/// What the code around a WRS.NTO tells.
struct Watched {
    address: u64,
    seen: u64,
    /// The word is a doubleword.
    wide: bool,
    ticket: Option<u16>,
}

fn watched(registers: &Registers) -> Option<Watched> {
    let context = &registers.context;
    let start = context
        .program_counter
        .wrapping_sub(WatchedWord::CODE_LENGTH as u64);
    let mut code = [0; WatchedWord::CODE_LENGTH];
    for (index, half) in code.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        *half = unprivileged::fetch_halfword(start.wrapping_add(2 * index as u64))?.to_le_bytes();
    }
    let word = WatchedWord::decode(code)?;
    let register = |register: Register| context.get(register.number() as u8);
    let wide = word.width == Width::Double;
    let ticket = (!wide)
        .then(|| register_of_ticket(context.program_counter, word.seen))
        .flatten();
    Some(Watched {
        address: register(word.address),
        seen: register(word.seen),
        wide,
        ticket: ticket.map(|ticket| register(ticket) as u16),
    })
}

fn register_of_ticket(program_counter: u64, seen: Register) -> Option<Register> {
    let after = program_counter.wrapping_add(LENGTH);
    let mut code = [0; ticket::CODE_LENGTH];
    let mut length = 0;
    for (index, half) in code.iter_mut().enumerate() {
        let Some(bits) = unprivileged::fetch_halfword(after.wrapping_add(2 * index as u64)) else {
            break;
        };
        *half = bits;
        length = index + 1;
    }
    ticket::register_of_ticket(code.get(..length)?, seen)
}
