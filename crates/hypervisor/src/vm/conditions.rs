//! What several words have to be for a vCPU to spin on.

use crate::hart::decode::Width;
use crate::hart::instruction::{Condition, MOST_CONDITIONS};
use crate::memory::address::HostPhysical;

/// The conditions of a wait for several words, each of which lies in the VM's memory.
#[derive(Clone, Debug, Default)]
pub struct Conditions([Option<Condition>; MOST_CONDITIONS]);

/// What is at `host`, with zeros above its width.
///
/// # Safety
/// `host` lies in a VM's memory and is aligned to `width`.
pub unsafe fn read(host: HostPhysical, width: Width) -> u64 {
    let host = host.raw();
    // SAFETY: the caller says so, and it is real memory whoever has it.
    unsafe {
        match width {
            Width::Byte => (host as *const u8).read_volatile().into(),
            Width::Half => (host as *const u16).read_volatile().into(),
            Width::Word => (host as *const u32).read_volatile().into(),
            Width::Double => (host as *const u64).read_volatile(),
        }
    }
}

impl Conditions {
    /// These.
    ///
    /// # Safety
    /// The place of each is the host's address of a word in a VM's memory, aligned to its width.
    #[must_use]
    pub const unsafe fn new(conditions: [Option<Condition>; MOST_CONDITIONS]) -> Self {
        Self(conditions)
    }

    /// Where the words are.
    pub fn into_places(self) -> impl Iterator<Item = HostPhysical> {
        let conditions = self.0.into_iter().flatten();
        conditions.map(|condition| HostPhysical::new(condition.place))
    }

    /// Whether all of them hold.
    #[must_use]
    pub fn hold(&self) -> bool {
        self.0.iter().flatten().all(|condition| {
            let host = HostPhysical::new(condition.place);
            // SAFETY: `new` was told that it lies in a VM's memory, aligned. Where the guest has given the page back, what is read is
            // a hint at most.
            condition.holds(unsafe { read(host, condition.width) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Mutex;
    use crate::vm::word::Word;
    use core::ptr::from_mut;

    /// Memory of a guest: two words of 64 bits.
    fn memory() -> Box<[u64; 2]> {
        Box::new([0x1000, 0xffff_ff80])
    }

    fn conditions(memory: *mut [u64; 2]) -> Conditions {
        let at = memory.expose_provenance() as u64;
        let condition = |place, width, mask, value, equal| Condition {
            place,
            width,
            signed: true,
            mask,
            value,
            equal,
        };
        // SAFETY: all lie in `memory`, aligned.
        unsafe {
            Conditions::new([
                Some(condition(at, Width::Double, !7, 0x1000, true)),
                Some(condition(at + 8, Width::Byte, 1 << 63, 0, false)),
                Some(condition(at + 12, Width::Half, 1, 0, true)),
                None,
            ])
        }
    }

    #[test]
    fn a_wait_is_over_when_one_of_its_words_says_so() {
        let memory = from_mut(Box::leak(memory()));
        let place = HostPhysical::new(memory.expose_provenance() as u64);
        let mut word = Word::first_of_several(place, true);
        let beside = Mutex::new(conditions(memory));
        assert!(!word.test(&beside) && word.place().is_none());
        let set = |first: u64, second: u64| {
            // SAFETY: it is memory of this test alone.
            unsafe { memory.write_volatile([first, second]) };
        };
        // Bits that do not count.
        set(0x1007, 0x0002_ffff_ffc0);
        assert!(!word.has_come(&beside));
        for (first, second) in [(0x1008, 0x80), (0x1000, 0x7f), (0x1000, 0x0001_0000_0080)] {
            set(first, second);
            assert!(word.has_come(&beside), "{first:x} {second:x}");
        }
        assert!(word.test(&beside));
        set(0x1000, 0x80);
        assert!(
            !word.has_come(&beside) && word.test(&beside),
            "words are used again"
        );
        // It is no wait for the first word to change.
        // SAFETY: the word is there.
        unsafe { word.stall(false) };
        assert!(!word.has_changed());
    }

    #[test]
    fn the_places_are_those_of_all_words() {
        let memory = from_mut(Box::leak(memory()));
        let at = memory.expose_provenance() as u64;
        let places: Vec<u64> = conditions(memory)
            .into_places()
            .map(HostPhysical::raw)
            .collect();
        assert_eq!(places, [at, at + 8, at + 12]);
        assert_eq!(Conditions::default().into_places().count(), 0);
    }
}
