//! A guest's rings, word by word.

use super::area::Area;
use super::chain::{self, QueueError, after};
use crate::memory::address::GuestPhysical;
use crate::memory::guest::{HostMemory, Memory};
use crate::memory::owned::OwnedRegion;

/// A part of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Available = 1,
    Used = 2,
}

/// Place of a guest's queue in use. All of it is the guest's.
#[derive(Debug)]
pub struct Rings {
    /// Descriptors, available ring and used ring.
    pub guest: [GuestPhysical; 3],
    /// Place of the queue for the fast path.
    pub area: Option<Area>,
}

impl Rings {
    /// The bytes of a part behind the first `offset`, in the host's memory.
    #[inline]
    fn in_area(&self, part: Part, offset: u64) -> Option<OwnedRegion> {
        let [_, available, used] = self.area.as_ref()?.parts();
        let base = match part {
            Part::Available => available,
            Part::Used => used,
        };
        Some(base.skip(offset))
    }

    fn in_guest(&self, part: Part, offset: u64) -> Result<GuestPhysical, QueueError> {
        let [_, available, used] = self.guest;
        match part {
            Part::Available => after(available, offset),
            Part::Used => after(used, offset),
        }
    }

    /// The halfword at an offset of a part, a multiple of 2.
    ///
    /// # Errors
    /// [`QueueError::OutsideMemory`].
    #[inline]
    pub fn half(&self, memory: Memory<'_>, part: Part, offset: u64) -> Result<u16, QueueError> {
        if let Some(at) = self.in_area(part, offset) {
            return Ok(u16::from_le(memory.host.half(at)));
        }
        chain::halfword(memory, self.in_guest(part, offset)?)
    }

    /// Sets the halfword at an offset of a part, a multiple of 2.
    ///
    /// # Errors
    /// [`QueueError::OutsideMemory`].
    #[inline]
    pub fn set_half(
        &self,
        memory: Memory<'_>,
        part: Part,
        offset: u64,
        value: u16,
    ) -> Result<(), QueueError> {
        let at = match self.in_area(part, offset) {
            Some(at) => at,
            None => {
                let at = self.in_guest(part, offset)?;
                let place = memory.guest.in_one(at, 2);
                place.ok_or(QueueError::OutsideMemory(at))?
            }
        };
        memory.host.set_half(at, value.to_le());
        Ok(())
    }

    /// Sets the entry at an offset of the used ring, a multiple of 4: a chain's head, and how many bytes were written.
    ///
    /// # Errors
    /// [`QueueError::OutsideMemory`].
    #[inline]
    pub fn set_entry(
        &self,
        memory: Memory<'_>,
        offset: u64,
        (head, written): (u32, u32),
    ) -> Result<(), QueueError> {
        if let Some(at) = self.in_area(Part::Used, offset) {
            memory.host.set_word(at, head.to_le());
            memory.host.set_word(at.skip(4), written.to_le());
            return Ok(());
        }
        self.set_entry_in_guest(memory, offset, (head, written))
    }

    /// Writes an entry if the guest's memory is in more than one piece. Out of line, so that the other way needs few registers.
    #[inline(never)]
    fn set_entry_in_guest(
        &self,
        memory: Memory<'_>,
        offset: u64,
        (head, written): (u32, u32),
    ) -> Result<(), QueueError> {
        let at = self.in_guest(Part::Used, offset)?;
        chain::set_word(memory, at, head)?;
        chain::set_word(memory, after(at, 4)?, written)
    }

    /// Sets the word at an offset of the used ring, a multiple of 4.
    ///
    /// # Errors
    /// [`QueueError::OutsideMemory`].
    #[inline]
    pub fn set_word(&self, memory: Memory<'_>, offset: u64, value: u32) -> Result<(), QueueError> {
        if let Some(at) = self.in_area(Part::Used, offset) {
            memory.host.set_word(at, value.to_le());
            return Ok(());
        }
        chain::set_word(memory, self.in_guest(Part::Used, offset)?, value)
    }
}

/// Returns true if an index has passed `wanted` on its way from `before` to `after`, modulo 2^16 (§2.7.10).
#[must_use]
pub const fn is_passed(wanted: u16, before: u16, after: u16) -> bool {
    after.wrapping_sub(wanted).wrapping_sub(1) < after.wrapping_sub(before)
}
