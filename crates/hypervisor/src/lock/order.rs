//! In which order a hart takes locks.
//!
//! Each lock has a place, and a hart that has a lock waits for none whose place is the same or an earlier one. So no two harts
//! wait for each other. `LOCKS.md` says what each lock keeps; a test compares the two lists. With the feature `lock-order`
//! each hart notes what it has, and the hypervisor stops at the first lock that is waited for out of turn, whether or not
//! another hart has it: every run is then a test of the order of all locks that it takes.

#[cfg(any(test, feature = "lock-order"))]
mod held;

/// The places, first to last.
pub mod place {
    pub const VCPU_STATE: u8 = 0;
    pub const LOADING: u8 = 1;
    pub const TRAPPED_DEVICES: u8 = 2;
    pub const RECLAIM: u8 = 3;
    pub const REPORTED_ALLOCATION: u8 = 4;
    pub const SOFTWARE_EVENTS: u8 = 5;
    pub const REPORT: u8 = 6;
    pub const LIFE_CYCLE: u8 = 7;
    pub const SHARED: u8 = 8;
    pub const LEDGER: u8 = 9;
    pub const SCHEDULER: u8 = 10;
    pub const WORD: u8 = 11;
    pub const CONDITIONS: u8 = 12;
    pub const INTERRUPTS: u8 = 13;
    pub const TABLE: u8 = 14;
    pub const FRAMES: u8 = 15;
    pub const FILES: u8 = 16;
    pub const SOURCE: u8 = 17;
    pub const TYPED: u8 = 18;
    pub const TERMINAL: u8 = 19;
    pub const EARLY: u8 = 20;
    pub const FENCES: u8 = 21;
}

#[cfg(feature = "lock-order")]
pub use noted::begin;

/// A hart is about to wait for the lock at `place`.
#[inline]
pub fn waits(place: u8) {
    #[cfg(feature = "lock-order")]
    noted::waits(place);
    let _ = place;
}

/// A hart has got the lock at `place`.
#[inline]
pub fn takes(place: u8) {
    #[cfg(feature = "lock-order")]
    noted::change(|held| held.with(place));
    let _ = place;
}

/// A hart gives the lock at `place` back.
#[inline]
pub fn gives_back(place: u8) {
    #[cfg(feature = "lock-order")]
    noted::change(|held| held.without(place));
    let _ = place;
}

#[cfg(feature = "lock-order")]
mod noted {
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use super::held::Held;
    use spin::Once;

    /// A hart by the address of what it keeps for itself, and what it has.
    struct Row {
        hart: AtomicUsize,
        held: AtomicU32,
    }

    const HARTS: usize = abi::system::MAX_HARTS as usize;

    static ROWS: [Row; HARTS] = [const {
        Row {
            hart: AtomicUsize::new(0),
            held: AtomicU32::new(0),
        }
    }; HARTS];

    /// Function that names the asking hart; 0 while the hart's number is unknown.
    static NAME: Once<fn() -> usize> = Once::new();

    /// Locks are noted from now on, for the hart that `name` names.
    pub fn begin(name: fn() -> usize) {
        NAME.call_once(|| name);
    }

    /// Row of this hart. The first hart has none until it knows its number, and is alone until then.
    fn row() -> Option<&'static Row> {
        let own = NAME.get()?();
        if own == 0 {
            return None;
        }
        ROWS.iter().find(|row| {
            let set = row
                .hart
                .compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
            set.is_ok() || set == Err(own)
        })
    }

    pub fn waits(place: u8) {
        let Some(row) = row() else { return };
        if let Err(defect) = Held(row.held.load(Ordering::Relaxed)).may_wait(place) {
            // The report takes locks too.
            row.held.store(0, Ordering::Relaxed);
            panic!("a hart {defect}");
        }
    }

    pub fn change(how: impl Fn(Held) -> Held) {
        if let Some(row) = row() {
            let held = Held(row.held.load(Ordering::Relaxed));
            row.held.store(how(held).0, Ordering::Relaxed);
        }
    }
}
