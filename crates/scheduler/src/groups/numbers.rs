//! Sets of vCPUs by their numbers.

use core::fmt;

use crate::id::{MAX_NUMBERS, VcpuNumber};

const WORD: usize = 64;
const WORDS: usize = MAX_NUMBERS.div_ceil(WORD);

/// A set of vCPUs of the whole computer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberSet([u64; WORDS]);

impl NumberSet {
    /// The set without members.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The set with one member.
    #[must_use]
    pub const fn only(vcpu: VcpuNumber) -> Self {
        let mut set = Self::EMPTY;
        set.insert(vcpu);
        set
    }

    /// Adds a member; nothing happens if it is there already.
    #[inline]
    pub const fn insert(&mut self, vcpu: VcpuNumber) {
        self.0[vcpu.index() / WORD] |= 1 << (vcpu.index() % WORD);
    }

    /// Takes a member out; nothing happens if it is not there.
    pub const fn remove(&mut self, vcpu: VcpuNumber) {
        self.0[vcpu.index() / WORD] &= !(1 << (vcpu.index() % WORD));
    }

    /// Whether `vcpu` belongs to the set.
    #[must_use]
    pub const fn contains(&self, vcpu: VcpuNumber) -> bool {
        self.0[vcpu.index() / WORD] >> (vcpu.index() % WORD) & 1 != 0
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The members in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = VcpuNumber> + use<> {
        let words = self.0.into_iter().enumerate();
        words.flat_map(|(place, word)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.checked_sub(1)?;
                VcpuNumber::new((place * WORD) as u16 + bit as u16)
            })
        })
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
    }
}
