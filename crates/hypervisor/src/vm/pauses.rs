//! When the pause loops of a VM exit, on harts with pause-loop exiting (docs/extensions.md, `xpartitaple`).

use core::sync::atomic::{AtomicU32, Ordering};

use abi::system::PauseLoops;

/// What Xen and KVM use (paper 004 §3), in cycles.
const USUAL_GAP: u32 = 128;
const USUAL_WINDOW: u32 = 4096;

/// A VM's terms, which the operator may change while it runs. The three are read one by one: a vCPU that sees some of the old ones with
/// some of the new has its next loops exit sooner or later than was meant, once.
#[derive(Debug)]
pub struct PauseTerms {
    gap: AtomicU32,
    window: AtomicU32,
    most: AtomicU32,
}

impl PauseTerms {
    /// Those that are given, and the usual ones for the others.
    #[must_use]
    pub fn new(given: PauseLoops) -> Self {
        let window = given.window.unwrap_or(USUAL_WINDOW);
        Self {
            gap: AtomicU32::new(given.gap.unwrap_or(USUAL_GAP)),
            window: AtomicU32::new(window),
            most: AtomicU32::new(given.window_most.unwrap_or(window)),
        }
    }

    /// Other terms, with a window that does not grow.
    pub fn set(&self, gap: u32, window: u32) {
        self.gap.store(gap, Ordering::Relaxed);
        self.window.store(window, Ordering::Relaxed);
        self.most.store(window, Ordering::Relaxed);
    }

    /// What a vCPU that is dispatched begins with.
    #[must_use]
    pub fn begin(&self) -> PauseWindow {
        PauseWindow {
            gap: self.gap.load(Ordering::Relaxed),
            window: self.window.load(Ordering::Relaxed),
            most: self.most.load(Ordering::Relaxed),
        }
    }
}

/// When the pause loops of a vCPU exit, in this stay on a hart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseWindow {
    gap: u32,
    window: u32,
    most: u32,
}

impl PauseWindow {
    /// The gap and the window in cycles.
    #[must_use]
    pub const fn now(self) -> (u32, u32) {
        (self.gap, self.window)
    }

    /// A loop has exited: the next one has twice the time, where the window may grow.
    pub fn grow(&mut self) {
        let twice = self.window.saturating_mul(2).min(self.most);
        self.window = self.window.max(twice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(gap: Option<u32>, window: Option<u32>, window_most: Option<u32>) -> PauseTerms {
        PauseTerms::new(PauseLoops {
            gap,
            window,
            window_most,
        })
    }

    #[test]
    fn what_is_not_given_is_usual() {
        assert_eq!(terms(None, None, None).begin().now(), (128, 4096));
        assert_eq!(terms(Some(64), Some(0), None).begin().now(), (64, 0));
    }

    #[test]
    fn a_window_doubles_up_to_its_most_and_is_small_again_at_a_dispatch() {
        let terms = terms(None, Some(1000), Some(3000));
        let mut window = terms.begin();
        for expected in [1000, 2000, 3000, 3000] {
            assert_eq!(window.now().1, expected);
            window.grow();
        }
        assert_eq!(terms.begin().now().1, 1000);
    }

    #[test]
    fn a_window_that_may_not_grow_stays_and_none_stays_none() {
        for window in [0, 4096, u32::MAX] {
            let mut now = terms(None, Some(window), None).begin();
            now.grow();
            assert_eq!(now.now().1, window);
        }
    }

    #[test]
    fn the_operators_terms_hold_from_the_next_dispatch_on() {
        let terms = terms(None, Some(1000), Some(9000));
        terms.set(32, 512);
        let mut window = terms.begin();
        window.grow();
        assert_eq!(window.now(), (32, 512));
    }
}
