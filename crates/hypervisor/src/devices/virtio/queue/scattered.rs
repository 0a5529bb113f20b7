//! Chains of a guest whose memory lies in any pieces, and those that the fast path by a constant leaves (paper 001, §4.2.2).
//!
//! The addresses do not differ by a constant. Each buffer becomes as many descriptors as it touches pieces: pages, whose frames are mostly found
//! in a cache ([`PageCache`](crate::memory::touched)). The descriptors are written where the device does not look yet, so that a chain that is wrong
//! or finds no room leaves nothing behind.

use super::chain::{self, QueueError, WRITE};
use super::device::{DeviceQueue, Draft};
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::Memory;

/// Reads the chain that begins at `head` of the table of `size` descriptors at `table`, each of its words once. Returns the number of its
/// descriptors, and the draft of a chain for the device; no draft if the device's queue has no room for it now.
///
/// # Errors
/// [`QueueError`]: the chain is wrong, or longer than the device's queue.
pub fn translate(
    memory: Memory<'_>,
    table: (GuestPhysical, u16),
    head: u16,
    device: &DeviceQueue,
) -> Result<(usize, Option<Draft>), QueueError> {
    let (mut draft, most) = (device.draft(), device.max_pieces());
    // A descriptor is written when it is known whether another one follows.
    let mut last: Option<((u64, u32), bool)> = None;
    let (mut pieces, mut fits) = (0, true);
    let read = chain::each(memory, table, head, most, |address, length, flags| {
        if length == 0 {
            return Err(QueueError::EmptyBuffer);
        }
        let outside = QueueError::OutsideMemory(address);
        let buffer = GuestRegion::new(address, length.into()).ok_or(outside)?;
        let written = flags & WRITE != 0;
        for place in memory.guest.ranges(buffer).ok_or(outside)? {
            if pieces == most {
                return Err(QueueError::TooLong);
            }
            pieces += 1;
            let now = (place.base().raw(), place.size() as u32);
            if let Some((before, written)) = last.replace((now, written)) {
                fits = fits && device.add(&mut draft, before, written, false, memory.host);
            }
        }
        Ok(())
    })?;
    let fits = fits
        && last.is_some_and(|(place, written)| {
            device.add(&mut draft, place, written, true, memory.host)
        });
    Ok((read, fits.then_some(draft)))
}
