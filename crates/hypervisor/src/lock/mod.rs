//! Spin locks, of a word each.
//!
//! A RISC-V hart changes words and doublewords in one step. A lock of a byte, as the crate `spin` has it, takes seven
//! instructions more each time, and a dispatch takes four locks that nobody else wants.

use core::sync::atomic::{AtomicU32, Ordering};

/// 1 where somebody has the lock, else 0.
#[derive(Debug)]
pub struct WordLock(AtomicU32);

// SAFETY: who finds 0 when exchanging it for 1 has the lock, and nobody else does before 0 is stored again. What the one did under
// the lock is seen by the next: the store releases, the exchange acquires.
unsafe impl lock_api::RawMutex for WordLock {
    const INIT: Self = Self(AtomicU32::new(0));

    type GuardMarker = lock_api::GuardSend;

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.wait();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.swap(1, Ordering::Acquire) == 0
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl WordLock {
    #[cold]
    fn wait(&self) {
        use lock_api::RawMutex;
        loop {
            // Looking takes no line of the cache from whoever has the lock.
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
pub type Mutex<T> = lock_api::Mutex<WordLock, T>;

/// The value of a [`Mutex`], for as long as a hart has it.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, WordLock, T>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_has_the_value_at_a_time() {
        let shared = Mutex::new(0u32);
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
    fn a_value_that_somebody_has_is_not_to_be_had() {
        let shared = Mutex::new(());
        let guard = shared.try_lock();
        assert!(guard.is_some() && shared.is_locked());
        assert!(shared.try_lock().is_none());
        drop(guard);
        assert!(!shared.is_locked() && shared.try_lock().is_some());
    }
}
