//! Sets of vCPUs by their numbers.

use core::fmt;
use core::hash::{Hash, Hasher};

use crate::base::id::{MAX_NUMBERS, MAX_VCPUS, VcpuNumber, VcpuSet};

const WORD: usize = 64;
const WORDS: usize = MAX_NUMBERS.div_ceil(WORD);

/// A set of vCPUs of the whole computer.
#[derive(Clone, Copy)]
pub struct NumberSet {
    /// Words; one without a bit in `used` is void.
    words: [u64; WORDS],
    /// Words used since the set was empty, a bit each: most sets have their members in few words.
    used: u8,
}

const _: () = assert!(WORDS <= u8::BITS as usize);

impl NumberSet {
    /// Empty set.
    pub const EMPTY: Self = Self {
        words: [0; WORDS],
        used: 0,
    };

    /// Set with one member.
    #[must_use]
    #[inline]
    pub const fn only(vcpu: VcpuNumber) -> Self {
        let mut set = Self::EMPTY;
        set.insert(vcpu);
        set
    }

    /// Removes all members.
    #[inline]
    pub const fn clear(&mut self) {
        self.used = 0;
    }

    /// Sets the members to the vCPUs with these places as numbers.
    #[inline]
    pub(super) const fn set_places(&mut self, places: VcpuSet) {
        const { assert!(MAX_VCPUS <= WORD) };
        self.words[0] = places.bits();
        self.used = 1;
    }

    const fn word(&self, word: usize) -> u64 {
        if self.used >> word & 1 != 0 {
            self.words[word]
        } else {
            0
        }
    }

    /// Adds a member, if it is not there yet.
    #[inline]
    pub const fn insert(&mut self, vcpu: VcpuNumber) {
        let word = vcpu.index() / WORD;
        self.words[word] = self.word(word) | 1 << (vcpu.index() % WORD);
        self.used |= 1 << word;
    }

    /// Removes a member, if it is there.
    #[inline]
    pub const fn remove(&mut self, vcpu: VcpuNumber) {
        self.words[vcpu.index() / WORD] &= !(1 << (vcpu.index() % WORD));
    }

    /// Returns true if `vcpu` belongs to the set.
    #[must_use]
    #[inline]
    pub const fn contains(&self, vcpu: VcpuNumber) -> bool {
        self.word(vcpu.index() / WORD) >> (vcpu.index() % WORD) & 1 != 0
    }

    /// Returns true if there is no member.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Members in the order of their numbers.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = VcpuNumber> + use<'_> {
        Members::new(self.used, |word| self.words[word])
    }
}

/// Numbers of the one bits of some words, in order.
#[derive(Debug)]
pub struct Members<F> {
    word: F,
    /// Words still to be read, a bit each, from `place` on.
    words: u8,
    place: u16,
    rest: u64,
}

impl<F: Fn(usize) -> u64> Members<F> {
    /// Numbers in the words that have a bit in `words`, each read by `word`.
    #[inline]
    pub const fn new(words: u8, word: F) -> Self {
        Self {
            word,
            words,
            place: 0,
            rest: 0,
        }
    }
}

impl<F: Fn(usize) -> u64> Iterator for Members<F> {
    type Item = VcpuNumber;

    #[inline]
    fn next(&mut self) -> Option<VcpuNumber> {
        while self.rest == 0 {
            if self.words == 0 {
                return None;
            }
            if self.words & 1 != 0 {
                self.rest = (self.word)(usize::from(self.place));
            }
            self.words >>= 1;
            self.place += 1;
        }
        let bit = self.rest.trailing_zeros() as u16;
        self.rest &= self.rest - 1;
        VcpuNumber::new((self.place - 1) * WORD as u16 + bit)
    }

    /// Folds with two nested loops, which take fewer instructions than `next`.
    #[inline]
    fn fold<B, G: FnMut(B, VcpuNumber) -> B>(mut self, init: B, mut with: G) -> B {
        let mut folded = init;
        let mut base = self.place.saturating_sub(1) * WORD as u16;
        loop {
            while self.rest != 0 {
                let bit = self.rest.trailing_zeros() as u16;
                self.rest &= self.rest - 1;
                if let Some(number) = VcpuNumber::new(base + bit) {
                    folded = with(folded, number);
                }
            }
            if self.words == 0 {
                return folded;
            }
            base = self.place * WORD as u16;
            if self.words & 1 != 0 {
                self.rest = (self.word)(usize::from(self.place));
            }
            self.words >>= 1;
            self.place += 1;
        }
    }
}

impl PartialEq for NumberSet {
    fn eq(&self, other: &Self) -> bool {
        (0..WORDS).all(|word| self.word(word) == other.word(word))
    }
}

impl Eq for NumberSet {}

impl Hash for NumberSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in 0..WORDS {
            self.word(word).hash(state);
        }
    }
}

impl FromIterator<VcpuNumber> for NumberSet {
    fn from_iter<I: IntoIterator<Item = VcpuNumber>>(members: I) -> Self {
        let mut set = Self::EMPTY;
        for member in members {
            set.insert(member);
        }
        set
    }
}

impl fmt::Debug for NumberSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_set_returns_its_members_in_order() {
        let last = u16::try_from(MAX_NUMBERS).unwrap() - 1;
        let members = [last, 0, 3].map(|number| VcpuNumber::new(number).unwrap());
        let set: NumberSet = members.into_iter().collect();
        let found: Vec<u16> = set.iter().map(VcpuNumber::get).collect();
        assert_eq!(found, [0, 3, last]);
        assert!(members.into_iter().all(|member| set.contains(member)));
        assert!(!set.is_empty() && NumberSet::EMPTY.is_empty());
        let mut left = set;
        for member in members {
            left.remove(member);
            left.remove(member);
        }
        assert!(left.is_empty() && left == NumberSet::EMPTY && left.iter().next().is_none());
        let mut again = set;
        again.clear();
        assert!(again.is_empty() && !again.contains(members[0]));
        again.insert(members[1]);
        assert!(
            again == NumberSet::only(members[1]),
            "what was there before counts no more"
        );
        let mut rest = set.iter();
        assert_eq!(rest.next(), VcpuNumber::new(0));
        // The rest is folded as it would have been returned.
        let folded = rest.fold(Vec::new(), |mut all, member| {
            all.push(member.get());
            all
        });
        assert_eq!(folded, [3, last]);
    }
}
