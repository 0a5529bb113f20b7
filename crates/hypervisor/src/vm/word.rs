//! The word that a spinning vCPU waits for, and what is known of its wait.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::hart;
use crate::lock::{Mutex, place};
use crate::memory::address::HostPhysical;
use crate::vm::conditions::Conditions;

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
    /// It is the first of several words: the conditions beside it tell whether the wait is over.
    several: bool,
}

/// The conditions of a vCPU's wait for several words.
pub type Beside = Mutex<Conditions, { place::CONDITIONS }>;

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
    /// A word of 32 or, if `wide`, 64 bits at `host`, which lies in a VM's memory and is aligned to its width. The guest saw
    /// `seen` there, and waits with `ticket` if that is known.
    #[must_use]
    pub fn new(host: HostPhysical, wide: bool, seen: u64, ticket: Option<u16>) -> Self {
        Self {
            host: host.raw(),
            wide,
            seen,
            ticket,
            came: false,
            several: false,
        }
    }

    /// The first of several words: the one of 32 or, if `wide`, 64 bits at `host`, as for [`Word::new`].
    #[must_use]
    pub fn first_of_several(host: HostPhysical, wide: bool) -> Self {
        Self {
            several: true,
            ..Self::new(host, wide, 0, None)
        }
    }

    /// Whether it is the first of several words.
    #[must_use]
    pub const fn is_one_of_several(self) -> bool {
        self.several
    }

    /// Where the word is.
    #[must_use]
    pub const fn host(self) -> HostPhysical {
        HostPhysical::new(self.host)
    }

    /// The word as it is now, as the guest's load would have given it.
    fn value(self) -> u64 {
        // SAFETY: `host` was checked to lie in the VM's memory, aligned to its width, and is real memory whoever has it: where the guest
        // gives it back, what is read there is a hint at most.
        unsafe {
            if self.wide {
                (self.host as *const u64).read_volatile()
            } else {
                (self.host as *const i32).read_volatile() as i64 as u64
            }
        }
    }

    /// Whether what the guest waits for has come: its ticket, or another value than it saw; where it waits for several words, one
    /// of the conditions `beside` does not hold any more.
    #[must_use]
    pub fn has_come(self, beside: &Beside) -> bool {
        match self.several {
            true => !beside.lock().hold(),
            false => self.has_changed(),
        }
    }

    /// The same of one word.
    #[must_use]
    pub fn has_changed(self) -> bool {
        self.is_over_at(self.value())
    }

    /// Tests whether what the guest waits for has come, and remembers it.
    pub fn test(&mut self, beside: &Beside) -> bool {
        self.came |= self.has_come(beside);
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
            None => value != self.seen && !self.several,
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
    ///
    /// # Safety
    /// With `by_reservation` the hart has Zawrs.
    pub unsafe fn stall(self, by_reservation: bool) {
        let value = self.value();
        if self.is_over_at(value) {
            return;
        }
        if !by_reservation {
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
/// alone are compared. Two words of it differ in these bits where the host's memory ends below 2^50; elsewhere one lock may be taken
/// for another, which costs time alone.
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

    /// Whether the wait was for the word of this one, and is over.
    #[must_use]
    pub fn was_over_at(&self, word: Word) -> bool {
        self.over && self.at == Some((word.host, word.ticket))
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
