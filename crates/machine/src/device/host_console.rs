//! Console of the host at a device of the machine.

use super::console::{Console, Silent};
use super::marker::Marker;

/// A console in a device: not part of a checkpoint, silent until one is attached.
#[derive(Debug)]
pub(super) struct HostConsole(pub Box<dyn Console>);

impl Default for HostConsole {
    fn default() -> Self {
        Self(Box::new(Silent))
    }
}

impl HostConsole {
    /// Watches for a text from now on.
    pub fn watch(&mut self, marker: &Marker) {
        let console = std::mem::take(self).0;
        self.0 = Box::new(marker.watch(console));
    }
}
