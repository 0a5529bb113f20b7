//! Watched words: the word that a spinning vCPU waits for, and its position at a ticket lock.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::port::ReadWord;
use crate::register::Width;

/// A word of a guest's memory, and the value that ends the guest's wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedWord<A> {
    address: A,
    wide: bool,
    seen: u64,
    /// Ticket of a waiter at a ticket lock: the wait is over when the lower half of the word shows it.
    ticket: Option<u16>,
    /// A poll found the wait over. The word may have changed back since: words are reused.
    over: bool,
    /// First of several words, whose conditions are kept apart and decide.
    several: bool,
}

/// State of a spin, by its code, registers and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinStatus<A> {
    /// The wait is over already.
    Over(WatchedWord<A>),
    /// The guest waits for this word.
    On(WatchedWord<A>),
    /// The code has no known pattern, or the word cannot be read.
    Unknown,
}

impl<A: ReadWord> SpinStatus<A> {
    /// Status of a wait for `word` alone.
    #[must_use]
    pub fn of(word: Option<WatchedWord<A>>) -> Self {
        match word {
            Some(word) if word.has_changed() => Self::Over(word),
            Some(word) => Self::On(word),
            None => Self::Unknown,
        }
    }
}

impl<A: ReadWord> WatchedWord<A> {
    /// Word of 32 or, if `wide`, 64 bits, in which the guest saw `seen`; `ticket` is the guest's ticket if it is known.
    #[must_use]
    pub const fn new(address: A, wide: bool, seen: u64, ticket: Option<u16>) -> Self {
        Self {
            address,
            wide,
            seen,
            ticket,
            over: false,
            several: false,
        }
    }

    /// First of several words. The caller keeps the [`Conditions`](crate::Conditions) that decide.
    #[must_use]
    pub const fn first_of_several(address: A, wide: bool) -> Self {
        Self {
            several: true,
            ..Self::new(address, wide, 0, None)
        }
    }

    /// Returns true for the first of several words.
    #[must_use]
    pub const fn is_one_of_several(self) -> bool {
        self.several
    }

    /// Returns true for a word of 64 bits.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        self.wide
    }

    /// Address of the word.
    #[must_use]
    pub const fn address(self) -> A {
        self.address
    }

    /// Current value, as the guest's load would give it.
    #[must_use]
    pub fn value(self) -> u64 {
        match self.wide {
            true => self.address.read(Width::Double),
            false => Width::Word.extend(self.address.read(Width::Word), true),
        }
    }

    /// Returns true if the wait is over. `all_hold` evaluates the conditions of a wait for several words.
    #[must_use]
    pub fn is_over(self, all_hold: impl FnOnce() -> bool) -> bool {
        match self.several {
            true => !all_hold(),
            false => self.has_changed(),
        }
    }

    /// Returns true if the word shows the guest's ticket, or another value than the guest saw.
    #[must_use]
    pub fn has_changed(self) -> bool {
        self.is_over_at(self.value())
    }

    /// Polls the word as [`Self::is_over`] does, and remembers that the wait is over.
    pub fn poll(&mut self, all_hold: impl FnOnce() -> bool) -> bool {
        self.over |= self.is_over(all_hold);
        self.over
    }

    /// Returns true if an earlier poll found the wait over.
    #[must_use]
    pub const fn was_found_over(self) -> bool {
        self.over
    }

    /// Returns true if a word with this value ends the wait.
    #[must_use]
    pub const fn is_over_at(self, value: u64) -> bool {
        match self.ticket {
            Some(ticket) => value as u16 == ticket,
            None => value != self.seen && !self.several,
        }
    }

    /// Position of the waiter at a ticket lock.
    #[must_use]
    pub fn position(self) -> Option<LockPosition> {
        Some(LockPosition::new(self.address.raw(), self.ticket?))
    }

    /// Returns true if the waiter is the next in line at a ticket lock.
    #[must_use]
    pub fn is_next(self) -> bool {
        self.ticket
            .is_some_and(|ticket| ticket.wrapping_sub(1) == self.value() as u16)
    }

    /// Position that is served at a ticket lock, as the guest saw it.
    #[must_use]
    pub fn served_position(self) -> Option<LockPosition> {
        let _ = self.ticket?;
        Some(LockPosition::new(self.address.raw(), self.seen as u16))
    }

    /// Word and ticket as numbers, which name the wait.
    pub(crate) fn wait(self) -> (u64, Option<u16>) {
        (self.address.raw(), self.ticket)
    }
}

/// A ticket of a ticket lock.
///
/// Bits 2 to 49 of the address of the lock's word, which is aligned to 4 bytes, name the lock. Only positions of vCPUs of one VM are compared.
/// Two words of it differ in these bits where the host's memory ends below 2^50; elsewhere one lock may be taken for another, which costs time
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockPosition(u64);

impl LockPosition {
    const fn new(lock: u64, ticket: u16) -> Self {
        Self((lock >> 2) << 16 | ticket as u64)
    }
}

/// Last position of a vCPU.
///
/// Lock and ticket are in one word, so that another hart never reads a new lock with an old ticket. Nothing else depends on the order in which
/// harts see it: it is a hint.
#[derive(Debug, Default)]
pub struct LastPosition(AtomicU64);

impl LastPosition {
    /// Stores a position.
    pub fn set(&self, position: LockPosition) {
        self.0.store(position.0, Ordering::Relaxed);
    }

    /// True at this position. 0, before the first one, is no word of a VM's memory: the firmware's memory lies there.
    #[must_use]
    pub fn is(&self, position: LockPosition) -> bool {
        self.0.load(Ordering::Relaxed) == position.0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A word of a test's memory.
    #[derive(Clone, Copy, Debug)]
    struct Memory<'a>(&'a Cell<u64>);

    impl ReadWord for Memory<'_> {
        fn read(self, width: Width) -> u64 {
            width.truncate(self.0.get())
        }

        fn raw(self) -> u64 {
            0x8000_0000
        }
    }

    #[test]
    fn change_of_a_word_ends_its_wait() {
        let memory = Cell::new(0x1_ffff_fff0);
        let mut word = WatchedWord::new(Memory(&memory), false, (-16_i64) as u64, None);
        let hold = || unreachable!("one word has no other conditions");
        assert!(!word.poll(hold) && !word.was_found_over());
        memory.set(7);
        assert!(word.poll(hold));
        memory.set(0xffff_fff0);
        assert!(!word.is_over(hold) && word.poll(hold), "words are reused");
        assert_eq!((word.position(), word.served_position()), (None, None));
    }

    #[test]
    fn ticket_ends_the_wait_at_its_turn() {
        let memory = Cell::new(0x0009_0005);
        let word = WatchedWord::new(Memory(&memory), false, 0x0009_0004, Some(6));
        assert!(!word.has_changed() && word.is_next());
        memory.set(0x000a_0006);
        assert!(word.has_changed() && !word.is_next());
        let last = LastPosition::default();
        let position = word.position().unwrap();
        assert!(!last.is(position));
        last.set(position);
        assert!(last.is(position) && !last.is(word.served_position().unwrap()));
    }

    #[test]
    fn conditions_decide_for_several_words() {
        let memory = Cell::new(1);
        let word = WatchedWord::first_of_several(Memory(&memory), true);
        assert!(word.is_one_of_several() && !word.has_changed());
        assert!(word.is_over(|| false) && !word.is_over(|| true));
    }
}
