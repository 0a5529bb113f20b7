//! Guest's queue whose chains the hypervisor serves itself.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use riscv::virtio::queue::NO_INTERRUPT;

use super::area::Area;
use super::chain::{self, Piece, QueueError};
use super::layout::QueueLayout;
use super::rings::{Part, Rings, is_passed};
use crate::memory::address::GuestRegion;
use crate::memory::guest::Memory;

/// The most entries of such a queue.
pub const MAX_ENTRIES: u16 = 256;

/// Readings of a chain whose memory is zeroed meanwhile: as many pieces more become zero in each.
const READINGS: usize = 8;

/// A guest's queue that is in use.
#[derive(Debug)]
pub struct GuestQueue {
    size: u16,
    rings: Rings,
    /// Set if each side names the index at which it is notified (VIRTIO_F_EVENT_IDX).
    event_indices: bool,
    /// Next entry of the available ring to read, and of the used ring to write.
    next_available: u16,
    next_used: u16,
    /// Index of the used ring that the guest has seen.
    published: u16,
}

impl GuestQueue {
    /// Queue at the place that the guest has set.
    ///
    /// # Errors
    /// [`QueueError::BadQueue`], and [`QueueError::OutsideMemory`].
    pub fn new(
        layout: QueueLayout,
        event_indices: bool,
        memory: Memory<'_>,
    ) -> Result<Self, QueueError> {
        let (guest, size) = layout.checked(MAX_ENTRIES, memory)?;
        let area = Area::acquire(memory.guest, guest, size);
        Ok(Self {
            size,
            rings: Rings { guest, area },
            event_indices,
            next_available: 0,
            next_used: 0,
            published: 0,
        })
    }

    /// The head of the next chain that the guest has made available and that was not [taken](Self::take).
    ///
    /// # Errors
    /// [`QueueError`]: the driver broke the rules.
    pub fn next(&self, memory: Memory<'_>) -> Result<Option<u16>, QueueError> {
        let index = self.rings.half(memory, Part::Available, 2)?;
        match index.wrapping_sub(self.next_available) {
            0 => return Ok(None),
            available if available > self.size => return Err(QueueError::TooMany),
            _ => {}
        }
        // The entries are read after the index that says that they are there.
        fence(Ordering::Acquire);
        let entry = u64::from(self.next_available & self.size.wrapping_sub(1));
        self.rings
            .half(memory, Part::Available, 4 + 2 * entry)
            .map(Some)
    }

    /// Takes the next chain.
    pub const fn take(&mut self) {
        self.next_available = self.next_available.wrapping_add(1);
    }

    /// Asks the guest to notify of the next chain. Returns true if there is one already.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn request_notification(&mut self, memory: Memory<'_>) -> Result<bool, QueueError> {
        if self.event_indices {
            let behind_entries = 4 + 8 * u64::from(self.size);
            self.rings
                .set_half(memory, Part::Used, behind_entries, self.next_available)?;
            // Chains that the guest made available before it saw that are found now (§2.7.10).
            fence(Ordering::SeqCst);
        }
        Ok(self.next(memory)?.is_some())
    }

    /// Reads the chain at `head` into `pieces`, at most so many. Returns the number of descriptors, or as many as there can be if memory had to
    /// be zeroed for more than one reading.
    ///
    /// # Errors
    /// [`QueueError`]. Then `pieces` has no meaning.
    pub fn read(
        &self,
        head: u16,
        pieces: &mut Vec<Piece>,
        most: usize,
        memory: Memory<'_>,
    ) -> Result<usize, QueueError> {
        let [table, ..] = self.rings.guest;
        let mut cost = 0;
        for _ in 0..READINGS {
            let before = memory.guest.advances();
            match chain::read(memory, (table, self.size), head, pieces, most) {
                // Memory that had to be zeroed is in single pages. The next reading finds them in one piece.
                Err(QueueError::TooLong) if memory.guest.advances() != before => cost = usize::MAX,
                read => return Ok(read?.max(cost)),
            }
        }
        Err(QueueError::TooLong)
    }

    /// Shows each buffer of the chain at `head` to `visit`, by the guest's addresses. No buffer is reached.
    ///
    /// # Errors
    /// [`QueueError`], for a buffer that ends beyond all addresses or is empty, too.
    pub fn each_buffer(
        &self,
        head: u16,
        most: usize,
        memory: Memory<'_>,
        visit: &mut dyn FnMut(GuestRegion),
    ) -> Result<(), QueueError> {
        let [table, ..] = self.rings.guest;
        chain::each(
            memory,
            (table, self.size),
            head,
            most,
            |address, length, _| {
                if length == 0 {
                    return Err(QueueError::EmptyBuffer);
                }
                let buffer = GuestRegion::new(address, length.into());
                visit(buffer.ok_or(QueueError::OutsideMemory(address))?);
                Ok(())
            },
        )?;
        Ok(())
    }

    /// Returns a chain, into which so many bytes were written. The guest does not see it before [`Self::publish_used`].
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn put_used(
        &mut self,
        head: u16,
        written: u32,
        memory: Memory<'_>,
    ) -> Result<(), QueueError> {
        let at = 4 + 8 * u64::from(self.next_used & self.size.wrapping_sub(1));
        self.rings.set_word(memory, at, head.into())?;
        self.rings.set_word(memory, at + 4, written)?;
        self.next_used = self.next_used.wrapping_add(1);
        Ok(())
    }

    /// Shows the guest the returned chains. Returns true if the guest is to be interrupted.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn publish_used(&mut self, memory: Memory<'_>) -> Result<bool, QueueError> {
        let before = core::mem::replace(&mut self.published, self.next_used);
        if before == self.next_used {
            return Ok(false);
        }
        // The entries, then the index, then the check whether the driver wants an interrupt (§2.7.8, §2.7.7.2).
        fence(Ordering::Release);
        self.rings
            .set_word(memory, 0, u32::from(self.next_used) << 16)?;
        fence(Ordering::SeqCst);
        if self.event_indices {
            let behind_entries = 4 + 2 * u64::from(self.size);
            let wanted = self.rings.half(memory, Part::Available, behind_entries)?;
            return Ok(is_passed(wanted, before, self.next_used));
        }
        Ok(self.rings.half(memory, Part::Available, 0)? & NO_INTERRUPT == 0)
    }
}
