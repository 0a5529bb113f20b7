//! Gap and window of pause-loop exits (docs/reference/extensions.md, `xpartitaple`), in cycles.

use core::sync::atomic::{AtomicU32, Ordering};

/// Parameters of a VM, which the operator may change while it runs. The three are read one by one: a vCPU that sees some old and some new ones
/// has its next loop exit sooner or later than was meant, once.
#[derive(Debug)]
pub struct PauseTerms {
    gap: AtomicU32,
    window: AtomicU32,
    max_window: AtomicU32,
}

impl PauseTerms {
    /// Parameters of a VM. A window whose maximum is the window itself does not grow.
    #[must_use]
    pub const fn new(gap: u32, window: u32, max_window: u32) -> Self {
        Self {
            gap: AtomicU32::new(gap),
            window: AtomicU32::new(window),
            max_window: AtomicU32::new(max_window),
        }
    }

    /// Changes gap and window; the window does not grow.
    pub fn set(&self, gap: u32, window: u32) {
        self.gap.store(gap, Ordering::Relaxed);
        self.window.store(window, Ordering::Relaxed);
        self.max_window.store(window, Ordering::Relaxed);
    }

    /// Initial window of a vCPU that is dispatched.
    #[must_use]
    pub fn begin(&self) -> PauseWindow {
        PauseWindow {
            gap: self.gap.load(Ordering::Relaxed),
            window: self.window.load(Ordering::Relaxed),
            max_window: self.max_window.load(Ordering::Relaxed),
        }
    }
}

/// Gap and window of a vCPU since its dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseWindow {
    gap: u32,
    window: u32,
    max_window: u32,
}

impl PauseWindow {
    /// Current gap and window in cycles.
    #[must_use]
    pub const fn now(self) -> (u32, u32) {
        (self.gap, self.window)
    }

    /// Doubles the window after an exit, up to its maximum.
    pub fn grow(&mut self) {
        let twice = self.window.saturating_mul(2).min(self.max_window);
        self.window = self.window.max(twice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_grows_until_the_next_dispatch() {
        let terms = PauseTerms::new(128, 1000, 3000);
        let mut window = terms.begin();
        for expected in [1000, 2000, 3000, 3000] {
            assert_eq!(window.now().1, expected);
            window.grow();
        }
        assert_eq!(terms.begin().now().1, 1000);
    }

    #[test]
    fn window_without_a_maximum_stays() {
        for window in [0, 4096, u32::MAX] {
            let mut now = PauseTerms::new(128, window, window).begin();
            now.grow();
            assert_eq!(now.now().1, window);
        }
    }

    #[test]
    fn operators_parameters_hold_from_next_dispatch() {
        let terms = PauseTerms::new(128, 1000, 9000);
        terms.set(32, 512);
        let mut window = terms.begin();
        window.grow();
        assert_eq!(window.now(), (32, 512));
    }
}
