//! Copies of a device's configuration space, and stores to the space.

use super::Mediated;
use super::configuration::MAX_BYTES;
use crate::devices::trapped::{Access, VirtioContext};
use crate::devices::virtio::{configuration_bytes, is_writable, register};
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;

/// Copies in a row that the device may change its configuration under. The last one is taken as it is: a further change follows.
const MAX_COPIES: u32 = 4;

impl Mediated {
    /// Copies the device's configuration.
    #[cold]
    #[inline(never)]
    pub(super) fn copy_configuration(&mut self, context: &dyn VirtioContext) {
        let end = configuration_bytes(self.identity.device).min(MAX_BYTES);
        let mut bytes = [0; MAX_BYTES];
        let mut generation = self.word(register::CONFIGURATION_GENERATION, context);
        for _ in 0..MAX_COPIES {
            for (offset, byte) in (0..).zip(bytes.iter_mut().take(end)) {
                // A device whose space ends sooner answers with a fault.
                let found = context.load_register(self.field(offset), Width::Byte);
                *byte = found.unwrap_or(0) as u8;
            }
            let before = generation;
            generation = self.word(register::CONFIGURATION_GENERATION, context);
            if before == generation {
                break;
            }
        }
        if let Some(segments) = self.segments {
            segments.put(&mut bytes, self.identity.features);
        }
        let copy = &mut self.configuration;
        copy.of_device = generation;
        if copy.bytes != bytes {
            copy.bytes = bytes;
            copy.generation = copy.generation.wrapping_add(1);
        }
    }

    /// The place of a byte of the configuration. The registers are in the board's memory map, so that nothing overflows.
    const fn field(&self, offset: u64) -> HostPhysical {
        let offset = register::CONFIGURATION.wrapping_add(offset);
        HostPhysical::new(self.config.registers.raw().wrapping_add(offset))
    }

    /// Copies the configuration if the device's generation has changed. Returns true if it has.
    pub(super) fn refresh(&mut self, context: &dyn VirtioContext) -> bool {
        let of_device = self.word(register::CONFIGURATION_GENERATION, context);
        let has_changed = of_device != self.configuration.of_device;
        if has_changed {
            self.copy_configuration(context);
        }
        has_changed
    }

    /// Passes a store on to a field that the driver may write, with the field's own width. Returns true where there is one.
    #[cold]
    pub(super) fn store_field(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn VirtioContext,
    ) -> bool {
        let is_field = is_writable(self.identity.device, access.offset, access.width);
        if is_field {
            context.store_register(self.field(access.offset), access.width, value);
            self.copy_configuration(context);
        }
        is_field
    }
}
