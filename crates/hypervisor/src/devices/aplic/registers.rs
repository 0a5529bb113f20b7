//! A guest's APLIC as a device on its bus.

use abi::monitor::ExitCause;

use super::Aplic;
use super::offset::SETIPNUM_LE;
use crate::devices::irq::{Effect, SourceNumber};
use crate::devices::trapped::{Access, DeviceContext, TrappedDevice, WouldBlock};
use crate::hart::decode::Width;

/// The registers of an interrupt domain are words (AIA, "Memory-mapped control region for an interrupt domain"): an access
/// of another width reads zero, or is ignored.
impl TrappedDevice for Aplic {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioAplic
    }

    fn load(&mut self, access: Access, outside: &dyn DeviceContext) -> u64 {
        match access.width {
            Width::Word => self.read(access.offset, outside.sources()).into(),
            _ => 0,
        }
    }

    #[inline]
    fn store(
        &mut self,
        access: Access,
        value: u64,
        outside: &dyn DeviceContext,
    ) -> Result<(), WouldBlock> {
        if access.width == Width::Word {
            let number = SourceNumber(value as u32);
            match access.offset {
                // A kernel writes `setipnum` for a level-sensitive source after each of its interrupts.
                SETIPNUM_LE if self.is_physical(number) => {
                    outside.apply(Effect::SetPending(number));
                }
                offset => self.write(offset, value as u32, &mut |effect| outside.apply(effect)),
            }
        }
        Ok(())
    }

    fn poll(&mut self, _: &dyn DeviceContext) {}

    fn irq_level(&self) -> bool {
        false
    }

    fn reset(&mut self, outside: &dyn DeviceContext) {
        Self::reset(self, &mut |effect| outside.apply(effect));
    }
}
