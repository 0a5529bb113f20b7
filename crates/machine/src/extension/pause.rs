//! Pause-loop exiting.
//!
//! PAUSEs of V = 1 that follow one another within a gap make a loop; a loop that lasts longer than
//! a window gives control to HS-mode.

use serde::{Deserialize, Serialize};

/// The loop detector of one hart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseLoop {
    /// hplegap: greatest number of cycles between two PAUSEs of a loop.
    pub gap: u64,
    /// hplewindow: greatest number of cycles between a loop's first PAUSE and a later one; zero
    /// switches the detector off.
    pub window: u64,
    /// hplewindow's bit 63: PAUSEs of VU-mode are not looked at.
    pub supervisor_only: bool,
    /// When the loop's first PAUSE was and when its last one, in cycles, if there is a loop.
    since: Option<(u64, u64)>,
    /// True if a PAUSE is looked at now.
    armed: bool,
}

impl PauseLoop {
    /// The greatest gap and window: both registers hold 32 bits.
    pub const LARGEST: u64 = u32::MAX as u64;
    /// The bit of hplewindow that leaves VU-mode out.
    pub const SUPERVISOR_ONLY: u64 = 1 << 63;

    /// Tests whether a PAUSE is to be noted: V = 1 and the window is not zero.
    #[inline(always)]
    #[must_use]
    pub const fn is_armed(&self) -> bool {
        self.armed
    }

    /// The hart's virtualization mode changes. A change to V = 1 forgets the loop.
    pub const fn change_mode(&mut self, virtualized: bool) {
        self.armed = virtualized && self.window != 0;
        if !virtualized {
            self.since = None;
        }
    }

    /// Notes a PAUSE at a time in cycles; `true` if it is to exit.
    pub const fn note(&mut self, now: u64) -> bool {
        match self.since {
            Some((first, last)) if now.wrapping_sub(last) <= self.gap => {
                if now.wrapping_sub(first) > self.window {
                    self.since = None;
                    return true;
                }
                self.since = Some((first, now));
            }
            _ => self.since = Some((now, now)),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detector(gap: u64, window: u64) -> PauseLoop {
        let mut detector = PauseLoop {
            gap,
            window,
            ..PauseLoop::default()
        };
        detector.change_mode(true);
        detector
    }

    #[test]
    fn loops_exit_after_the_window() {
        let mut detector = detector(10, 100);
        assert!((0..=10).all(|n| !detector.note(n * 10)));
        assert!(detector.note(101));
        assert!(!detector.note(111), "what follows is a new loop");
    }

    #[test]
    fn distant_pauses_are_no_loop() {
        let mut detector = detector(10, 100);
        assert!((0..1000).all(|n| !detector.note(n * 11)));
    }

    #[test]
    fn entries_and_zero_windows_forget_loops() {
        let mut detector = detector(10, 100);
        assert!((0..=10).all(|n| !detector.note(n * 10)));
        detector.change_mode(false);
        assert!(!detector.is_armed());
        detector.change_mode(true);
        assert!(detector.is_armed() && !detector.note(101));
        detector.window = 0;
        detector.change_mode(true);
        assert!(!detector.is_armed());
    }
}
