//! Where a guest has put a queue.

use super::chain::Wrong;
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::Memory;

/// Where a guest has put a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Entries, as the guest chose them.
    pub size: u32,
    /// Descriptors, available ring and used ring.
    pub parts: [u64; 3],
}

impl Place {
    /// The parts and the size of a queue that lies there, of at most so many `entries`: one that virtio 1.2, §2.7, allows, and all of it
    /// the guest's memory.
    ///
    /// # Errors
    /// [`Wrong::BadQueue`], and [`Wrong::Outside`].
    pub fn checked(
        self,
        entries: u16,
        memory: Memory<'_>,
    ) -> Result<([GuestPhysical; 3], u16), Wrong> {
        let guest @ [descriptors, available, used] = self.parts.map(GuestPhysical::new);
        let size = u16::try_from(self.size).map_err(|_| Wrong::BadQueue)?;
        if !size.is_power_of_two() || size > entries {
            return Err(Wrong::BadQueue);
        }
        // Bytes and alignment of the parts (§2.7).
        let entries_of = u64::from(size);
        for (at, bytes, alignment) in [
            (descriptors, 16 * entries_of, 16),
            (available, 6 + 2 * entries_of, 2),
            (used, 6 + 8 * entries_of, 4),
        ] {
            if !at.is_aligned(alignment) {
                return Err(Wrong::BadQueue);
            }
            let region = GuestRegion::new(at, bytes).ok_or(Wrong::Outside(at))?;
            if !memory.guest.region().covers(region) {
                return Err(Wrong::Outside(at));
            }
        }
        Ok((guest, size))
    }
}
