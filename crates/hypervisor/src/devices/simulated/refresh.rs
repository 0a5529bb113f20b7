//! The copy of a device's configuration space is made, and stores to the space are passed on.

use super::Simulated;
use super::configuration::MAX_BYTES;
use crate::devices::trapped::{Access, Reach};
use crate::devices::virtio::{configuration_bytes, is_writable, register};
use crate::hart::decode::Width;

/// Copies in a row that the device may change its configuration under. The last one is taken as it is: a further change follows.
const MAX_COPIES: u32 = 4;

impl Simulated {
    /// Copies the device's configuration.
    #[cold]
    #[inline(never)]
    pub(super) fn copy_configuration(&mut self, reach: &dyn Reach) {
        let end = configuration_bytes(self.word(register::DEVICE_ID, reach)).min(MAX_BYTES);
        let mut bytes = [0; MAX_BYTES];
        let mut generation = self.word(register::CONFIGURATION_GENERATION, reach);
        for _ in 0..MAX_COPIES {
            for (offset, byte) in (register::CONFIGURATION..).zip(bytes.iter_mut().take(end)) {
                let Some(at) = self.means.registers.checked_add(offset) else {
                    break;
                };
                // A device whose space ends sooner answers with a fault.
                *byte = reach.device_load(at, Width::Byte).unwrap_or(0) as u8;
            }
            let before = generation;
            generation = self.word(register::CONFIGURATION_GENERATION, reach);
            if before == generation {
                break;
            }
        }
        let copy = &mut self.configuration;
        copy.of_device = generation;
        if copy.bytes != bytes {
            copy.bytes = bytes;
            copy.generation = copy.generation.wrapping_add(1);
        }
    }

    /// The generation of the configuration, which is copied first if the device's generation has changed.
    pub(super) fn load_generation(&mut self, reach: &dyn Reach) -> u32 {
        let of_device = self.word(register::CONFIGURATION_GENERATION, reach);
        if of_device != self.configuration.of_device {
            self.copy_configuration(reach);
            self.show_configuration(reach);
        }
        self.configuration.generation
    }

    /// Passes a store on to a field that the driver may write, with the field's own width.
    #[cold]
    pub(super) fn store_configuration(&mut self, access: Access, value: u64, reach: &dyn Reach) {
        let kind = self.word(register::DEVICE_ID, reach);
        let offset = access.offset.wrapping_sub(register::CONFIGURATION);
        if !is_writable(kind, offset, access.width) {
            return;
        }
        if let Some(at) = self.means.registers.checked_add(access.offset) {
            reach.device_store(at, access.width, value);
            self.copy_configuration(reach);
            self.show_configuration(reach);
            self.show(reach);
        }
    }
}
