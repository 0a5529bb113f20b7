//! Spin lock with a bounded wait.
//!
//! A hart that finds the lock free takes it, as with any spin lock: the hart that has waited longest may be a thread of another
//! computer which does not run just now, and others must not wait for it. But a hart that has polled [`PATIENCE`] times without
//! success claims the next turn. Others respect a claim for [`RESPECT`] polls, then they revoke it: a claim whose hart does not
//! run costs so much, once.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::{Mutex, MutexGuard, order};

/// Failed polls after which a hart claims the next turn: about as long as others hold the lock once.
const PATIENCE: u32 = 64;
/// Number of polls for which a hart respects another hart's claim of the next turn.
const RESPECT: u32 = 1024;

/// A value that one hart has at a time.
#[derive(Debug)]
// The value, which is large, last.
#[repr(C)]
pub struct TurnMutex<T, const PLACE: u8> {
    turn: Turn,
    value: Mutex<T, PLACE>,
}

impl<T, const PLACE: u8> TurnMutex<T, PLACE> {
    pub const fn new(value: T) -> Self {
        Self {
            turn: Turn::new(),
            value: Mutex::new(value),
        }
    }

    /// Locks the value.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, PLACE> {
        order::waits(PLACE);
        if self.turn.is_free()
            && let Some(guard) = self.value.try_lock()
        {
            return guard;
        }
        self.wait()
    }

    /// Locks the second of two locks of one row, which are waited for in the order of their numbers.
    pub fn lock_behind(&self) -> MutexGuard<'_, T, PLACE> {
        self.wait()
    }

    /// Locks the value if it is free and no waiter has claimed the next turn.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, PLACE>> {
        if self.turn.is_free() && !self.value.is_locked() {
            self.value.try_lock()
        } else {
            None
        }
    }

    /// Waits until the value is free, for a moment at least.
    pub fn await_free(&self) {
        while self.value.is_locked() {
            core::hint::spin_loop();
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T, PLACE> {
        // Its place on the stack names this hart.
        let looks = 0u32;
        let mut waiter = Waiter::new(core::ptr::from_ref(&looks).addr());
        loop {
            if self.turn.lets(&waiter)
                && !self.value.is_locked()
                && let Some(guard) = self.value.try_lock()
            {
                self.turn.pass(&waiter);
                return guard;
            }
            self.turn.fail(&mut waiter);
            core::hint::spin_loop();
        }
    }
}

/// Waiter for the lock.
#[derive(Debug)]
struct Waiter {
    /// Number that no other waiter has; not 0.
    name: usize,
    looks: u32,
    /// Claim that it respects, and the polls for which it has.
    respected: (usize, u32),
}

impl Waiter {
    const fn new(name: usize) -> Self {
        Self {
            name,
            looks: 0,
            respected: (0, 0),
        }
    }
}

/// Waiter that has claimed the next turn: its name, or 0.
#[derive(Debug)]
struct Turn(AtomicUsize);

impl Turn {
    const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    #[inline]
    fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Returns true if `waiter` may take the lock once it is free.
    fn lets(&self, waiter: &Waiter) -> bool {
        let claimed = self.0.load(Ordering::Relaxed);
        claimed == 0 || claimed == waiter.name
    }

    /// Notes a failed poll of `waiter`, which may claim the next turn.
    fn fail(&self, waiter: &mut Waiter) {
        waiter.looks = waiter.looks.saturating_add(1);
        let claimed = self.0.load(Ordering::Relaxed);
        if claimed == waiter.name {
            return;
        }
        if claimed == 0 {
            if waiter.looks >= PATIENCE {
                self.turn_from(0, waiter.name);
            }
            return;
        }
        let (whose, looks) = waiter.respected;
        let looks = if whose == claimed { looks + 1 } else { 1 };
        waiter.respected = (claimed, looks);
        if looks >= RESPECT {
            self.turn_from(claimed, 0);
            waiter.respected = (0, 0);
        }
    }

    /// Ends the claim of `waiter`, which has the lock.
    fn pass(&self, waiter: &Waiter) {
        if waiter.looks >= PATIENCE {
            self.turn_from(waiter.name, 0);
        }
    }

    fn turn_from(&self, from: usize, to: usize) {
        // Another hart may have been faster, which is as good.
        let _ = self
            .0
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_for_long_is_next() {
        let turn = Turn::new();
        let [mut one, mut other] = [Waiter::new(1), Waiter::new(2)];
        for _ in 0..PATIENCE {
            assert!(turn.lets(&other), "nobody has waited for long");
            turn.fail(&mut one);
        }
        assert!(turn.lets(&one) && !turn.lets(&other) && !turn.is_free());
        turn.fail(&mut other);
        turn.pass(&one);
        assert!(turn.lets(&other) && turn.is_free());
    }

    #[test]
    fn claim_of_a_stopped_hart_expires() {
        let turn = Turn::new();
        let [mut asleep, mut other] = [Waiter::new(1), Waiter::new(2)];
        for _ in 0..PATIENCE {
            turn.fail(&mut asleep);
        }
        for _ in 0..RESPECT {
            assert!(!turn.lets(&other));
            turn.fail(&mut other);
        }
        assert!(turn.lets(&other));
        // It claims the turn itself if it still does not get the lock; the other one comes again later.
        turn.fail(&mut other);
        assert!(turn.lets(&other) && !turn.lets(&asleep));
        turn.pass(&asleep);
        assert!(!turn.lets(&asleep), "it had no claim any more");
        turn.pass(&other);
        assert!(turn.is_free());
    }

    #[test]
    fn value_has_one_holder() {
        let shared = TurnMutex::<_, { order::place::SCHEDULER }>::new(0u32);
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
        assert!(shared.turn.is_free());
    }
}
