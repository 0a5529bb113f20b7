//! A guest's APLIC as a device on its bus.

use super::Aplic;
use super::offset::SETIPNUM_LE;
use crate::devices::irq::{Effect, SourceNumber};
use crate::devices::trapped::{Access, DeviceContext};
use crate::hart::decode::Width;

/// The registers of an interrupt domain are words (AIA, "Memory-mapped control region for an interrupt domain"): an access
/// of another width reads zero, or is ignored.
impl Aplic {
    /// Value of the guest's load.
    pub fn load(&self, access: Access, context: &dyn DeviceContext) -> u64 {
        match access.width {
            Width::Word => self.read(access.offset, context.sources()).into(),
            _ => 0,
        }
    }

    /// Takes the guest's store.
    #[inline]
    pub fn store(&mut self, access: Access, value: u64, context: &dyn DeviceContext) {
        if access.width == Width::Word {
            let number = SourceNumber(value as u32);
            match access.offset {
                // A kernel writes `setipnum` for a level-sensitive source after each of its interrupts.
                SETIPNUM_LE if self.is_physical(number) => {
                    context.apply(Effect::SetPending(number));
                }
                offset => self.write(offset, value as u32, &mut |effect| context.apply(effect)),
            }
        }
    }
}
