//! Size and addresses of a guest's queue.

use super::chain::QueueError;
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::Memory;

/// Descriptors, available ring and used ring of a checked queue, and its entries.
pub type Checked = ([GuestPhysical; 3], u16);

/// Size and addresses of a queue, as the guest has set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLayout {
    /// Entries, as the guest chose them.
    pub size: u32,
    /// Descriptors, available ring and used ring.
    pub parts: [u64; 3],
}

impl QueueLayout {
    /// Checks parts and size of a queue of at most so many `entries` by virtio 1.2, §2.7, and that all of it is the guest's
    /// memory.
    ///
    /// # Errors
    /// [`QueueError::BadQueue`], and [`QueueError::OutsideMemory`].
    pub fn checked(self, entries: u16, memory: Memory<'_>) -> Result<Checked, QueueError> {
        let guest @ [descriptors, available, used] = self.parts.map(GuestPhysical::new);
        let size = u16::try_from(self.size).map_err(|_| QueueError::BadQueue)?;
        if !size.is_power_of_two() || size > entries {
            return Err(QueueError::BadQueue);
        }
        // Alignment of the parts (§2.7).
        let [of_descriptors, of_available, of_used] = lengths(size);
        for (at, bytes, alignment) in [
            (descriptors, of_descriptors, 16),
            (available, of_available, 2),
            (used, of_used, 4),
        ] {
            if !at.is_aligned(alignment) {
                return Err(QueueError::BadQueue);
            }
            let region = GuestRegion::new(at, bytes).ok_or(QueueError::OutsideMemory(at))?;
            if !memory.guest.region().covers(region) {
                return Err(QueueError::OutsideMemory(at));
            }
        }
        Ok((guest, size))
    }
}

/// Bytes of descriptors, available ring and used ring of a queue of `size` entries (§2.7).
pub const fn lengths(size: u16) -> [u64; 3] {
    let entries = size as u64;
    [16 * entries, 6 + 2 * entries, 6 + 8 * entries]
}
