//! Spin locks, of a word each.
//!
//! A RISC-V hart changes words and doublewords in one step. A lock of a byte, as the crate `spin` has it, takes seven
//! instructions more each time, and a dispatch takes four uncontended locks.

pub mod order;

use core::sync::atomic::{AtomicU32, Ordering};

pub use order::place;

/// 1 while the lock is held, otherwise 0. Its place among all locks is one of [`place`].
#[derive(Debug)]
pub struct WordLock<const PLACE: u8>(AtomicU32);

// SAFETY: the hart that finds 0 when exchanging it for 1 has the lock, and no other hart has it before 0 is stored again. What the one did under
// the lock is seen by the next: the store releases, the exchange acquires.
unsafe impl<const PLACE: u8> lock_api::RawMutex for WordLock<PLACE> {
    const INIT: Self = Self(AtomicU32::new(0));

    type GuardMarker = lock_api::GuardSend;

    #[inline]
    fn lock(&self) {
        order::waits(PLACE);
        if !self.try_lock() {
            self.wait();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let taken = self.0.swap(1, Ordering::Acquire) == 0;
        if taken {
            order::takes(PLACE);
        }
        taken
    }

    #[inline]
    unsafe fn unlock(&self) {
        order::gives_back(PLACE);
        self.0.store(0, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl<const PLACE: u8> WordLock<PLACE> {
    #[cold]
    fn wait(&self) {
        use lock_api::RawMutex;
        loop {
            // A load does not take the cache line from the holder.
            while self.is_locked() {
                core::hint::spin_loop();
            }
            if self.try_lock() {
                return;
            }
        }
    }
}

/// A value that one hart has at a time.
pub type Mutex<T, const PLACE: u8> = lock_api::Mutex<WordLock<PLACE>, T>;

/// The value of a [`Mutex`], for as long as a hart has it.
pub type MutexGuard<'a, T, const PLACE: u8> = lock_api::MutexGuard<'a, WordLock<PLACE>, T>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_has_one_holder() {
        let shared = Mutex::<_, { place::TRAPPED_DEVICES }>::new(0u32);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let mut value = shared.lock();
                        let before = *value;
                        std::hint::spin_loop();
                        *value = before + 1;
                    }
                });
            }
        });
        assert_eq!(*shared.lock(), 40_000);
    }

    #[test]
    fn held_value_cannot_be_acquired() {
        let shared = Mutex::<_, { place::TRAPPED_DEVICES }>::new(());
        let guard = shared.try_lock();
        assert!(guard.is_some() && shared.is_locked());
        assert!(shared.try_lock().is_none());
        drop(guard);
        assert!(!shared.is_locked() && shared.try_lock().is_some());
    }
}
