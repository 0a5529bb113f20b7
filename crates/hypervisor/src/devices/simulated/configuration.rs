//! The device's configuration space, as its guest reads it: a copy, bounded by the structure that virtio has for the kind of device.
//!
//! A guest's access is never repeated at the device. The copy is made anew when the device says that the configuration has changed, when the
//! driver writes the status, and when it reads the generation and the device's has changed (virtio 1.2, §2.5 and §4.2.2).

use crate::devices::trapped::Access;
use crate::devices::virtio::register;

/// Bytes of the largest configuration space that a guest is shown.
pub const MAX_BYTES: usize = 0x100;
/// A copy of a device's configuration space.
#[derive(Debug)]
pub struct Configuration {
    pub bytes: [u8; MAX_BYTES],
    /// Changes of the copy, modulo 2^32: what the guest reads as the generation.
    pub generation: u32,
    /// The device's generation when the copy was made.
    pub of_device: u32,
}

impl Configuration {
    /// A copy of nothing.
    pub const fn new() -> Self {
        Self {
            bytes: [0; MAX_BYTES],
            generation: 0,
            of_device: 0,
        }
    }

    /// The value of an aligned access in the space; 0 beyond it.
    pub fn load(&self, access: Access) -> u64 {
        let bytes = access.width.bytes();
        let offset = access.offset.checked_sub(register::CONFIGURATION);
        let offset = offset.filter(|offset| offset.is_multiple_of(bytes));
        let Some(offset) = offset.and_then(|offset| usize::try_from(offset).ok()) else {
            return 0;
        };
        let found = self.bytes.iter().skip(offset).take(bytes as usize);
        (found.rev()).fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}
