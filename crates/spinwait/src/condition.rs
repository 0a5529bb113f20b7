//! Conditions on words of memory under which a spin loop goes on.

use crate::port::ReadWord;
use crate::register::Width;

/// Words of one wait at most.
pub const MAX_CONDITIONS: usize = 4;

/// Value that a word must have, or must not have, for a loop to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<A> {
    /// Address of the word.
    pub address: A,
    /// Width of the word.
    pub width: Width,
    /// Set if the word is sign-extended to a register.
    pub signed: bool,
    /// Bits of the register that count.
    pub mask: u64,
    /// Compared value of these bits.
    pub value: u64,
    /// The loop goes on while they are equal, or while they are not.
    pub equal: bool,
}

impl<A> Condition<A> {
    /// Returns true if the loop goes on with `raw`, of which the bits above the word's width do not count.
    #[must_use]
    pub const fn holds(&self, raw: u64) -> bool {
        let value = self.width.extend(raw, self.signed);
        (value & self.mask == self.value) == self.equal
    }
}

/// Conditions of a wait for several words.
#[derive(Clone, Debug)]
pub struct Conditions<A>([Option<Condition<A>>; MAX_CONDITIONS]);

impl<A> Default for Conditions<A> {
    fn default() -> Self {
        Self([const { None }; MAX_CONDITIONS])
    }
}

impl<A: ReadWord> Conditions<A> {
    /// Wraps conditions.
    #[must_use]
    pub const fn new(conditions: [Option<Condition<A>>; MAX_CONDITIONS]) -> Self {
        Self(conditions)
    }

    /// Addresses of the words.
    pub fn into_addresses(self) -> impl Iterator<Item = A> {
        let conditions = self.0.into_iter().flatten();
        conditions.map(|condition| condition.address)
    }

    /// Returns true while all hold.
    #[must_use]
    pub fn hold(&self) -> bool {
        let mut conditions = self.0.iter().flatten();
        conditions.all(|condition| condition.holds(condition.address.read(condition.width)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::vec::Vec;

    use super::*;
    use crate::word::WatchedWord;

    /// A byte of a test's memory: two words of 64 bits.
    #[derive(Clone, Copy, Debug)]
    struct At<'a>(&'a Cell<[u64; 2]>, usize);

    impl ReadWord for At<'_> {
        fn read(self, width: Width) -> u64 {
            let Self(memory, byte) = self;
            width.truncate(memory.get()[byte / 8] >> (8 * (byte % 8)))
        }

        fn raw(self) -> u64 {
            self.1 as u64
        }
    }

    fn conditions(memory: &Cell<[u64; 2]>) -> Conditions<At<'_>> {
        let condition = |byte, width, mask, value, equal| Condition {
            address: At(memory, byte),
            width,
            signed: true,
            mask,
            value,
            equal,
        };
        Conditions::new([
            Some(condition(0, Width::Double, !7, 0x1000, true)),
            Some(condition(8, Width::Byte, 1 << 63, 0, false)),
            Some(condition(12, Width::Half, 1, 0, true)),
            None,
        ])
    }

    #[test]
    fn one_condition_ends_the_wait() {
        let memory = Cell::new([0x1000, 0xffff_ff80]);
        let mut word = WatchedWord::first_of_several(At(&memory, 0), true);
        let conditions = conditions(&memory);
        assert!(!word.poll(|| conditions.hold()) && word.position().is_none());
        // Bits that do not count.
        memory.set([0x1007, 0x0002_ffff_ffc0]);
        assert!(conditions.hold());
        for words in [[0x1008, 0x80], [0x1000, 0x7f], [0x1000, 0x0001_0000_0080]] {
            memory.set(words);
            assert!(!conditions.hold(), "{words:x?}");
        }
        assert!(word.poll(|| conditions.hold()));
        memory.set([0x1000, 0x80]);
        assert!(conditions.hold() && word.poll(|| conditions.hold()));
    }

    #[test]
    fn addresses_are_those_of_all_words() {
        let memory = Cell::new([0; 2]);
        let addresses = conditions(&memory).into_addresses().map(ReadWord::raw);
        assert_eq!(addresses.collect::<Vec<_>>(), [0, 8, 12]);
        assert_eq!(Conditions::<At<'_>>::default().into_addresses().count(), 0);
    }
}
