//! Progress, for people who wait.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A line that says what is going on, on a terminal with a spinner; elsewhere a line for each step.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A progress line on standard error.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    /// Begins a step.
    pub fn step(&self, what: &str) {
        if self.bar.is_hidden() {
            eprintln!("partita: {what}");
        }
        self.bar.set_message(String::from(what));
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
