//! The vCPUs that wait for an interrupt on a hart, and the deadline at which the hart's timer wakes the first of them.

use core::sync::atomic::{AtomicU64, Ordering};

use scheduler::{MAX_NUMBERS, VcpuNumber};

/// The vCPUs that wait on a hart, and the earliest of their deadlines. Any hart takes a vCPU out; the hart itself does everything else.
#[derive(Debug)]
pub struct Waiting {
    /// A bit for each vCPU.
    members: [AtomicU64; MAX_NUMBERS.div_ceil(64)],
    /// Earliest deadline; [`UNKNOWN`] if it has to be found anew. It may be earlier if another hart took a vCPU out meanwhile.
    earliest: AtomicU64,
}

/// Deadline that is found anew.
const UNKNOWN: u64 = 0;

impl Default for Waiting {
    fn default() -> Self {
        Self {
            members: Default::default(),
            earliest: AtomicU64::new(u64::MAX),
        }
    }
}

impl Waiting {
    fn word(&self, vcpu: VcpuNumber) -> (&AtomicU64, u64) {
        (&self.members[vcpu.index() / 64], 1 << (vcpu.index() % 64))
    }

    /// Adds a member with its deadline.
    #[inline]
    pub fn insert(&self, vcpu: VcpuNumber, deadline: u64) {
        let (word, bit) = self.word(vcpu);
        word.fetch_or(bit, Ordering::Relaxed);
        let earliest = self.earliest.load(Ordering::Relaxed);
        self.earliest
            .store(earliest.min(deadline), Ordering::Relaxed);
    }

    /// Takes a member out, which had this deadline.
    #[inline]
    pub fn remove(&self, vcpu: VcpuNumber, deadline: u64) {
        let (word, bit) = self.word(vcpu);
        word.fetch_and(!bit, Ordering::Relaxed);
        if deadline <= self.earliest.load(Ordering::Relaxed) && deadline != u64::MAX {
            self.forget_earliest();
        }
    }

    /// Lets the earliest deadline be found anew.
    pub fn forget_earliest(&self) {
        self.earliest.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Returns true if a deadline may have come at `time`.
    #[must_use]
    #[inline]
    pub fn may_be_due(&self, time: u64) -> bool {
        self.earliest.load(Ordering::Relaxed) <= time
    }

    /// Returns true if one of the first `count` vCPUs is a member.
    #[must_use]
    #[inline]
    pub fn has_any(&self, count: usize) -> bool {
        let mut words = self.members.iter().take(count.div_ceil(64));
        words.any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Earliest deadline, by `find` if it has to be found anew.
    #[inline]
    pub fn earliest(&self, find: impl FnOnce() -> u64) -> u64 {
        match self.earliest.load(Ordering::Relaxed) {
            UNKNOWN => {
                let found = find();
                self.earliest.store(found, Ordering::Relaxed);
                found
            }
            known => known,
        }
    }

    /// Applies a function to each member among the first `count` vCPUs.
    pub fn for_each(&self, count: usize, mut what: impl FnMut(usize)) {
        for (place, word) in self.members.iter().enumerate().take(count.div_ceil(64)) {
            let mut rest = word.load(Ordering::Relaxed);
            while rest != 0 {
                what(place * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(number: u16) -> VcpuNumber {
        VcpuNumber::new(number).unwrap()
    }

    #[test]
    fn earliest_deadline_is_known_until_it_leaves() {
        let waiting = Waiting::default();
        let known = |waiting: &Waiting| waiting.earliest(|| panic!("it is known"));
        assert_eq!(known(&waiting), u64::MAX);
        waiting.insert(vcpu(1), 500);
        waiting.insert(vcpu(70), 300);
        waiting.insert(vcpu(2), u64::MAX);
        assert_eq!(known(&waiting), 300);
        waiting.remove(vcpu(1), 500);
        waiting.remove(vcpu(2), u64::MAX);
        assert_eq!(known(&waiting), 300, "a later one has left");
        waiting.remove(vcpu(70), 300);
        assert_eq!(waiting.earliest(|| 400), 400, "it is found anew");
        assert_eq!(known(&waiting), 400);
    }

    #[test]
    fn unknown_deadline_may_be_due() {
        let waiting = Waiting::default();
        assert!(!waiting.may_be_due(1000));
        waiting.insert(vcpu(0), 500);
        assert!(!waiting.may_be_due(499) && waiting.may_be_due(500));
        waiting.forget_earliest();
        waiting.insert(vcpu(1), 700);
        assert!(waiting.may_be_due(1));
        assert_eq!(waiting.earliest(|| 500), 500, "not the one that came last");
    }

    #[test]
    fn members_are_among_the_first() {
        let waiting = Waiting::default();
        waiting.insert(vcpu(3), 1);
        waiting.insert(vcpu(130), 1);
        let members = |count| {
            let mut members = Vec::new();
            waiting.for_each(count, |member| members.push(member));
            (members, waiting.has_any(count))
        };
        assert_eq!(members(64), (vec![3], true));
        assert_eq!(members(192), (vec![3, 130], true));
        waiting.remove(vcpu(3), 1);
        assert_eq!(members(128), (vec![], false));
    }
}
