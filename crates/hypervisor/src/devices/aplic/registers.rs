//! A guest's APLIC as a device on its bus.

use abi::monitor::ExitCause;

use super::Aplic;
use crate::devices::trapped::{Access, NotNow, Outside, Trapped};
use crate::hart::decode::Width;

/// The registers of an interrupt domain are words (AIA, "Memory-mapped control region for an interrupt domain"): an access
/// of another width reads zero, or is ignored.
impl Trapped for Aplic {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioAplic
    }

    fn load(&mut self, access: Access, outside: &dyn Outside) -> u64 {
        match access.width {
            Width::Word => self.read(access.offset, outside.sources()).into(),
            _ => 0,
        }
    }

    fn store(&mut self, access: Access, value: u64, outside: &dyn Outside) -> Result<(), NotNow> {
        if access.width == Width::Word {
            self.write(access.offset, value as u32, &mut |effect| {
                outside.apply(effect);
            });
        }
        Ok(())
    }

    fn look(&mut self, _: &dyn Outside) {}

    fn wire(&self) -> bool {
        false
    }

    fn reset(&mut self, outside: &dyn Outside) {
        Self::reset(self, &mut |effect| outside.apply(effect));
    }
}
