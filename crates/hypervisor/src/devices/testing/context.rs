//! Context in which a device reaches memory, the board and other devices, and nothing else.

use crate::devices::irq::{Effect, SourceNumber, Sources};
use crate::devices::trapped::{DeviceContext, VirtioContext, WouldBlock};

/// See the module.
pub struct Alone<'a>(pub &'a dyn VirtioContext);

/// Sources that are never pending.
pub struct NoSources;

impl Sources for NoSources {
    fn pending(&self, _: SourceNumber) -> bool {
        false
    }

    fn rectified_input(&self, _: SourceNumber) -> bool {
        false
    }
}

impl DeviceContext for Alone<'_> {
    fn print(&self, _: u8) -> Result<(), WouldBlock> {
        Ok(())
    }

    fn take_input(&self) -> Option<u8> {
        None
    }

    fn timer(&self) -> u64 {
        0
    }

    fn sources(&self) -> &dyn Sources {
        &NoSources
    }

    fn apply(&self, _: Effect) {}

    fn virtio(&self) -> Option<&dyn VirtioContext> {
        Some(self.0)
    }
}
