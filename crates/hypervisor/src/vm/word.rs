//! Watched words in this host's memory: the port of [`spinwait`] to it.

use spinwait::{Conditions, ReadWord, SpinStatus, WatchedWord, Width};

use crate::hart;
use crate::lock::{Mutex, place};
use crate::memory::address::{GuestPhysical, HostPhysical};
use crate::memory::guest::GuestMemory;

/// PAUSEs between two polls of a word on a hart without Zawrs.
const PAUSES: u32 = 16;

/// Host address of a word that was found in a VM's memory.
///
/// Holding one proves that an aligned word can be read there. It does not prove that the word is still the VM's: if the guest has given the page
/// back, the value is a hint at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestWord(u64);

impl GuestWord {
    /// Finds the word of `width` at a guest-physical address, if it is aligned and in the VM's memory.
    #[must_use]
    pub fn find(memory: &GuestMemory, address: GuestPhysical, width: Width) -> Option<Self> {
        let word = memory.in_one(address, width.bytes())?;
        word.fits(width.bytes()).then(|| Self(word.base().raw()))
    }

    /// The word of 32 bits that contains this one.
    #[must_use]
    pub const fn containing_word(self) -> Self {
        Self(self.0 & !3)
    }

    /// Host address.
    #[must_use]
    pub const fn host(self) -> HostPhysical {
        HostPhysical::new(self.0)
    }
}

impl ReadWord for GuestWord {
    #[inline]
    fn read(self, width: Width) -> u64 {
        let at = self.0 & !(width.bytes() - 1);
        // SAFETY: `find` had an `OwnedRegion` with the word, which is RAM without any Rust object as long as the hypervisor runs. An aligned access
        // around the word is in the same page.
        unsafe {
            match width {
                Width::Byte => (at as *const u8).read_volatile().into(),
                Width::Half => (at as *const u16).read_volatile().into(),
                Width::Word => (at as *const u32).read_volatile().into(),
                Width::Double => (at as *const u64).read_volatile(),
            }
        }
    }

    fn raw(self) -> u64 {
        self.0
    }
}

/// The word that a spinning vCPU waits for.
pub type Word = WatchedWord<GuestWord>;

/// State of a vCPU's spin.
pub type Spin = SpinStatus<GuestWord>;

/// Conditions of a vCPU's wait for several words.
pub type WaitConditions = Mutex<Conditions<GuestWord>, { place::CONDITIONS }>;

/// Stalls until `word` may have changed, for the short time of WRS.STO at most: WRS.NTO need not end in HS-mode, where nothing traps it.
///
/// # Safety
/// With `by_reservation` the hart has Zawrs.
pub unsafe fn stall(word: Word, by_reservation: bool) {
    let value = word.value();
    if word.is_over_at(value) {
        return;
    }
    if !by_reservation {
        // Every hart has PAUSE: it is a fence that orders nothing (Zihintpause).
        (0..PAUSES).for_each(|_| core::hint::spin_loop());
        return;
    }
    let host = word.address().0;
    // SAFETY: the hart has Zawrs, and a `GuestWord` is in memory.
    unsafe {
        if word.is_wide() {
            hart::stall_on_doubleword(host & !7, value);
        } else {
            hart::stall_on_word(host & !3, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ptr::from_mut;

    use spinwait::Condition;

    use super::*;

    /// Memory of a guest: two words of 64 bits, and the address of each of its bytes.
    fn memory(words: [u64; 2]) -> (*mut [u64; 2], impl Fn(u64) -> GuestWord) {
        let memory = from_mut(Box::leak(Box::new(words)));
        let at = memory.expose_provenance() as u64;
        (memory, move |byte| GuestWord(at + byte))
    }

    #[test]
    fn words_are_read_in_each_width() {
        let (_, at) = memory([0x1122_3344_5566_7788, 0]);
        assert_eq!(at(0).read(Width::Double), 0x1122_3344_5566_7788);
        assert_eq!(at(4).read(Width::Word), 0x1122_3344);
        assert_eq!(at(2).read(Width::Half), 0x5566);
        assert_eq!(at(7).read(Width::Byte), 0x11);
        assert_eq!(at(6).read(Width::Word), 0x1122_3344, "aligned");
        assert_eq!(at(7).containing_word(), at(4));
    }

    #[test]
    fn one_condition_ends_the_wait() {
        let (memory, at) = memory([0x1000, 0]);
        let condition = Condition {
            address: at(0),
            width: Width::Double,
            signed: true,
            mask: !7,
            value: 0x1000,
            equal: true,
        };
        let conditions = WaitConditions::new(Conditions::new([Some(condition), None, None, None]));
        let mut word = Word::first_of_several(at(0), true);
        assert!(!word.poll(|| conditions.lock().hold()));
        // SAFETY: the memory is this test's, and the first word does not end the wait by itself.
        unsafe {
            memory.write_volatile([0x1008, 0]);
            stall(word, false);
        }
        assert!(!word.has_changed() && word.poll(|| conditions.lock().hold()));
    }
}
