//! Configuration space of the device as its guest reads it: a copy, bounded by virtio's structure for the kind of device.
//!
//! A guest's access is never repeated at the device. The copy is made anew when the device says that the configuration has changed, when the
//! driver writes the status, and when it reads the generation and the device's has changed (virtio 1.2, §2.5 and §4.2.2).

use crate::devices::virtio::transport::CONFIGURATION_BYTES;

/// Bytes of the largest configuration space that a guest is shown.
pub const MAX_BYTES: usize = CONFIGURATION_BYTES as usize;
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
    /// Empty copy.
    pub const fn new() -> Self {
        Self {
            bytes: [0; MAX_BYTES],
            generation: 0,
            of_device: 0,
        }
    }

    /// A byte of the space; 0 behind the end of the device's structure.
    pub fn byte(&self, offset: u64) -> u8 {
        let place = usize::try_from(offset).ok();
        let byte = place.and_then(|place| self.bytes.get(place));
        byte.copied().unwrap_or(0)
    }
}
