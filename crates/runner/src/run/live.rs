//! A run while its computer runs: what is typed, and when it ends.

use super::account::Ending;
use super::console::Relay;
use super::script::Script;
use crate::computer::{Computer, GRACE, POWER_OFF_KEYS};
use std::time::Instant;

/// A computer that runs, with what is typed and when the run ends.
pub(super) struct LiveRun {
    pub(super) computer: Box<dyn Computer>,
    pub(super) relay: Relay,
    pub(super) script: Script,
    /// A person types the keys, not a script.
    pub(super) person: bool,
    /// The operator's prompt is opened when the hypervisor listens.
    pub(super) open_prompt: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) ending: Ending,
}

impl LiveRun {
    /// Returns whether the run has taken as long as it may.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|at| Instant::now() >= at)
    }

    /// Asks the hypervisor to power everything off within [`GRACE`].
    pub(super) fn power_off(&mut self, ending: Ending) {
        self.ending = ending;
        self.computer.send(POWER_OFF_KEYS);
        self.deadline = Some(Instant::now() + GRACE);
    }

    /// Passes keys on to the computer, or keeps them for a script. No keys are the end of all.
    pub(super) fn type_keys(&mut self, keys: &[u8]) {
        if !self.person {
            self.script.take(keys);
            return;
        }
        if keys.is_empty() {
            self.computer.close_keys();
        }
        self.computer.send(keys);
    }
}
