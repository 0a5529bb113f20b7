//! The fast path of a queue (paper 001, §4.2.2): static areas, and addresses translated by adding a constant.
//!
//! A guest's memory that lies in one piece needs no search: the places of its rings are found once, when the guest sets the queue up, and
//! each buffer is a constant away from where the guest says. Other chains are left to [`scattered`](super::scattered), which decides
//! again from the beginning: this path refuses nothing by itself.

use alloc::sync::Arc;

use super::chain::{DESCRIPTOR_BYTES, INDIRECT, NEXT, WRITE};
use super::device::{DeviceQueue, Draft};
use super::layout;
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::{GuestMemory, HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;
use crate::memory::zeroed::marks::Marks;

/// The most descriptors of a simple chain: the longest that stock Linux makes for a disk, of 126 segments, what stands before and behind them,
/// and the table that holds them.
const SIMPLE: usize = 129;

/// Place of a guest's queue in the host's memory, all of it in one piece with the rest of the guest's memory.
#[derive(Debug)]
pub struct Area {
    /// The guest's lowest address.
    base: u64,
    /// Memory of the guest.
    whole: OwnedRegion,
    /// Marks of what may be reached, if that is not all.
    marks: Option<Arc<Marks>>,
    /// The queue's descriptors, its available ring and its used ring, each with what lies behind it.
    parts: [OwnedRegion; 3],
}

impl Area {
    /// Area of a queue of `size` entries with these parts, which are the guest's; `None` if the guest's memory is in more than one piece.
    #[must_use]
    pub fn acquire(memory: &GuestMemory, parts: [GuestPhysical; 3], size: u16) -> Option<Self> {
        let (whole, marks) = memory.whole()?;
        if marks.is_some() {
            // The parts are reached without a look at the marks.
            for (part, bytes) in parts.into_iter().zip(layout::lengths(size)) {
                memory
                    .ranges(GuestRegion::new(part, bytes)?)?
                    .for_each(drop);
            }
        }
        let mut area = Self {
            base: whole.guest.base().raw(),
            whole: whole.host,
            marks,
            parts: [whole.host; 3],
        };
        for (place, part) in area.parts.iter_mut().zip(parts) {
            let before = part.raw().checked_sub(area.base)?;
            *place = whole.host.skip(before);
        }
        Some(area)
    }

    /// Memory of the descriptors, the available ring and the used ring.
    #[inline]
    #[must_use]
    pub const fn parts(&self) -> &[OwnedRegion; 3] {
        &self.parts
    }

    /// Memory of `bytes` bytes from a guest's address, if all are the guest's and may be reached.
    #[inline]
    fn place(&self, address: u64, bytes: u32) -> Option<OwnedRegion> {
        let before = address.checked_sub(self.base)?;
        let may_reach = |marks: &Arc<Marks>| marks.are_set(before, bytes.into());
        let part = self.whole.part(before, bytes.into())?;
        self.marks.as_ref().is_none_or(may_reach).then_some(part)
    }

    /// Reads the chain that begins at `head` of the queue's `size` descriptors, each of its words once, and adds its buffers to the `draft` of a
    /// chain for the device. Returns the number of its descriptors; `None`, with nothing done, if the chain is not simple or finds no
    /// room.
    #[inline(always)]
    #[must_use]
    pub fn translate(
        &self,
        host: TheHost<'_>,
        size: u16,
        head: u16,
        device: &DeviceQueue,
        mut draft: Draft,
    ) -> Option<(usize, Draft)> {
        let [table, ..] = self.parts;
        let (mut table, mut size, mut number) = (table, u32::from(size), head);
        let (mut indirect, mut descriptors) = (false, 0);
        loop {
            if descriptors == SIMPLE || u32::from(number) >= size {
                return None;
            }
            descriptors += 1;
            let at = table.skip(DESCRIPTOR_BYTES * u64::from(number));
            let [address, rest] = host.pair(at).map(u64::from_le);
            let (length, flags, next) = (rest as u32, (rest >> 32) as u16, (rest >> 48) as u16);
            let place = self.place(address, length)?;
            if flags & INDIRECT != 0 {
                let whole = u64::from(length).is_multiple_of(DESCRIPTOR_BYTES)
                    && place.base().is_aligned(8);
                if indirect || flags & NEXT != 0 || !whole {
                    return None;
                }
                (table, size, number) = (place, length / DESCRIPTOR_BYTES as u32, 0);
                indirect = true;
                continue;
            }
            if length == 0 {
                return None;
            }
            let is_last = flags & NEXT == 0;
            let written = flags & WRITE != 0;
            if !device.add(
                &mut draft,
                (place.base().raw(), length),
                written,
                is_last,
                host,
            ) {
                return None;
            }
            if is_last {
                return Some((descriptors, draft));
            }
            number = next;
        }
    }
}
