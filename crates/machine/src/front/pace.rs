//! Time for people: a machine that somebody talks to does not run ahead of their clock.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often somebody at a console is listened to, in machine time and, at least, in theirs.
pub const INTERVAL: Duration = Duration::from_millis(1);

/// Keeps an interval of machine time from passing in less of the host's.
#[derive(Debug)]
pub struct Pace(Cell<Instant>);

impl Pace {
    /// From now on.
    #[must_use]
    pub fn new() -> Self {
        Self(Cell::new(Instant::now()))
    }

    /// Waits until the next interval may begin. What the machine is behind is not made up for: a
    /// guest's clock then runs evenly.
    pub fn wait(&self) {
        let earliest = self.0.get();
        std::thread::sleep(earliest.saturating_duration_since(Instant::now()));
        self.0.set(earliest.max(Instant::now()) + INTERVAL);
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}
