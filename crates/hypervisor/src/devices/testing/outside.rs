//! A surrounding in which a device reaches memory, the board and other devices, and nothing else.

use crate::devices::trapped::{NotNow, Outside, Reach};
use crate::devices::wires::{Effect, SourceNumber, Sources};

/// See the module.
pub struct Alone<'a>(pub &'a dyn Reach);

/// No source ever has anything.
pub struct NoSources;

impl Sources for NoSources {
    fn pending(&self, _: SourceNumber) -> bool {
        false
    }

    fn rectified_input(&self, _: SourceNumber) -> bool {
        false
    }
}

impl Outside for Alone<'_> {
    fn print(&self, _: u8) -> Result<(), NotNow> {
        Ok(())
    }

    fn typed(&self) -> Option<u8> {
        None
    }

    fn timer(&self) -> u64 {
        0
    }

    fn sources(&self) -> &dyn Sources {
        &NoSources
    }

    fn apply(&self, _: Effect) {}

    fn reach(&self) -> Option<&dyn Reach> {
        Some(self.0)
    }
}
