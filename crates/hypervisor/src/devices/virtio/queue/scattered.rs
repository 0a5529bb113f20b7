//! The fast path of a queue whose guest's memory lies in single pages (paper 001, §4.2.2).
//!
//! The addresses do not differ by a constant. Each buffer becomes as many descriptors as it touches pages, whose frames are mostly found in a
//! cache ([`PageCache`](crate::memory::touched)). As on the path by a constant, chains that are wrong or find no room are left to
//! [`chain`], which decides again from the beginning.

use super::chain::{self, QueueError, WRITE};
use super::device::{DeviceQueue, Draft};
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::Memory;

/// Reads the chain that begins at `head` of the table of `size` descriptors at `table`, each of its words once, and adds its buffers to the
/// `draft` of a chain for the device. Returns the number of descriptors; `None` if nothing was done.
#[must_use]
pub fn translate(
    memory: Memory<'_>,
    table: (GuestPhysical, u16),
    head: u16,
    device: &DeviceQueue,
    mut draft: Draft,
) -> Option<(usize, Draft)> {
    // A descriptor is written when it is known whether another one follows.
    let mut last: Option<((u64, u32), bool)> = None;
    let read = chain::each(
        memory,
        table,
        head,
        device.max_pieces(),
        |address, length, flags| {
            if length == 0 {
                return Err(QueueError::EmptyBuffer);
            }
            let outside = QueueError::OutsideMemory(address);
            let buffer = GuestRegion::new(address, length.into()).ok_or(outside)?;
            let written = flags & WRITE != 0;
            for place in memory.guest.ranges(buffer).ok_or(outside)? {
                let now = (place.base().raw(), place.size() as u32);
                if let Some((before, written)) = last.replace((now, written))
                    && !device.add(&mut draft, before, written, false, memory.host)
                {
                    return Err(QueueError::TooLong);
                }
            }
            Ok(())
        },
    );
    let ((place, written), read) = (last?, read.ok()?);
    device
        .add(&mut draft, place, written, true, memory.host)
        .then_some((read, draft))
}
