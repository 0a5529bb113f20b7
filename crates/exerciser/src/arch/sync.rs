//! The kernel's own small locks, apart from those that the exercises measure.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A mutual exclusion lock that closes interrupts while it is held.
pub struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the one holder of `held`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lock")
    }
}

impl<T> Lock<T> {
    /// A free lock around a value.
    pub const fn new(value: T) -> Self {
        Self {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock and holds it until the guard is dropped.
    pub fn lock(&self) -> Guard<'_, T> {
        let reopen = super::csr::close_interrupts();
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            super::csr::pause();
        }
        Guard { lock: self, reopen }
    }
}

/// A held lock.
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    reopen: bool,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its hart holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
        if self.reopen {
            super::csr::open_interrupts();
        }
    }
}

/// A value that is set once, before anybody else may ask for it.
pub struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
}

const EMPTY: u8 = 0;
const SETTING: u8 = 1;
const SET: u8 = 2;

// SAFETY: the value is written once, by the one hart that moved the state from EMPTY to SETTING, and only
// read after SET was seen.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Once")
    }
}

impl<T> Once<T> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(None),
        }
    }

    /// Sets the value; a second call changes nothing.
    pub fn set(&self, value: T) {
        if self
            .state
            .compare_exchange(EMPTY, SETTING, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            // SAFETY: this hart alone moved the state to SETTING, and nobody reads before SET.
            unsafe { *self.value.get() = Some(value) };
            self.state.store(SET, Ordering::Release);
        }
    }

    /// The value, if it was set.
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: after SET the value is never written again.
        unsafe { (*self.value.get()).as_ref() }
    }
}
