//! Memory in one piece that is zeroed where it is touched (placements `real` and `resident`).
//!
//! A VM's memory has somebody else's bytes when the computer starts. So nothing of it is mapped, and no access of the hypervisor's for the guest
//! reaches it, before it is zeroed. A vCPU's touch zeroes the leaf that it needs in parts of [`PART`] bytes, and the leaf is mapped when it is zero; the
//! hypervisor's own accesses zero the page that they need. All of it is work for the VM, in the VM's time, and between any two parts the hart looks at
//! its interrupts.
//!
//! A VM that starts again finds zeros, too: before it is loaded, its leaves leave the table and their marks are cleared, [`LEAVES_A_STEP`] at a time.
//!
//! A device that reaches the memory by itself does not fault: a VM with such a device has its memory zeroed before each start (`system::loader`).
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod marks;

use alloc::sync::Arc;
use core::fmt::Debug;

use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};
use crate::memory::frames::FrameSize;
use crate::memory::gstage::{Permissions, TableMemory};
use crate::memory::guest::{Pages, Piece, Touch};
use crate::memory::owned::OwnedRegion;
use crate::memory::touched::SharedTable;
use marks::Marks;

/// Bytes of a leaf, which is mapped as a whole.
const LEAF: u64 = FrameSize::Megapage.bytes();
/// Bytes that a vCPU's touch zeroes at a time.
pub const PART: u64 = 64 << 10;
/// Leaves that one step of [`Pages::forget`] visits: those of a table.
pub const LEAVES_A_STEP: u64 = 512;

/// Bytes of the heap for memory of `size` bytes.
#[must_use]
pub const fn bytes(size: u64) -> usize {
    size.div_ceil(LEAF) as usize * marks::BYTES_A_LEAF
}

/// Tables and memory of a guest, as the calling hart reaches them. Called under the table's lock.
pub trait ZeroStore: Debug + Send + Sync {
    /// Passes the tables' memory to `with`. It need not allocate: the tables down to the leaves stand.
    fn with_tables<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T;
    /// Zeroes memory that no other code and no device uses.
    fn zero(&self, part: OwnedRegion);
}

/// Memory of one guest, of which a page is zero or the guest's own where it is marked, and anybody's where it is not.
#[derive(Debug)]
pub struct ZeroedOnTouch<S> {
    piece: [Piece; 1],
    table: SharedTable,
    store: S,
    /// Set under the table's lock.
    marks: Arc<Marks>,
}

impl<S: ZeroStore> ZeroedOnTouch<S> {
    /// Memory of which nothing is zero and nothing is in `table`, whose tables down to the leaves stand. `None` unless `piece` is made of leaves.
    pub fn new(piece: Piece, table: SharedTable, store: S) -> Option<Self> {
        let is_aligned = piece.guest.base().is_aligned(LEAF) && piece.host.base().is_aligned(LEAF);
        let is_whole = piece.guest.size().is_multiple_of(LEAF);
        (is_aligned && is_whole).then(|| Self {
            piece: [piece],
            table,
            store,
            marks: Arc::new(Marks::new(piece.guest.size() / LEAF)),
        })
    }

    /// Zeroes the pages of `size` bytes at `offset` that are not marked, and marks them. The table's lock is held.
    fn zero(&self, offset: u64, size: u64) {
        let [piece] = &self.piece;
        // Mostly none of it is marked.
        if !self.marks.has_any(offset, size) {
            if let Some(memory) = piece.host.part(offset, size) {
                self.store.zero(memory);
                self.marks.set(offset, size);
            }
            return;
        }
        for offset in (offset..offset.saturating_add(size)).step_by(PAGE_SIZE as usize) {
            if let Some(memory) = piece.host.part(offset, PAGE_SIZE)
                && !self.marks.are_set(offset, PAGE_SIZE)
            {
                self.store.zero(memory);
                self.marks.set(offset, PAGE_SIZE);
            }
        }
    }

    /// Offset of `at` in the memory.
    #[inline]
    fn offset(&self, at: GuestPhysical) -> Option<u64> {
        let [piece] = &self.piece;
        let offset = at.raw().checked_sub(piece.guest.base().raw())?;
        (offset < piece.guest.size()).then_some(offset)
    }
}

impl<S: ZeroStore> Pages for ZeroedOnTouch<S> {
    fn contiguous_from(&self, from: GuestPhysical) -> Option<OwnedRegion> {
        let offset = self.offset(from)?;
        let page = offset / PAGE_SIZE * PAGE_SIZE;
        if !self.marks.are_set(page, PAGE_SIZE) {
            let _table = self.table.lock();
            self.zero(page, PAGE_SIZE);
        }
        let end = self.marks.end_of_run(page)?;
        let [piece] = &self.piece;
        Some(piece.host.skip(offset).take(end.checked_sub(offset)?))
    }

    fn mapped(&self) -> &[Piece] {
        &self.piece
    }

    fn are_mapped_on_touch(&self) -> bool {
        true
    }

    fn marks(&self) -> Option<&Arc<Marks>> {
        Some(&self.marks)
    }

    fn zero_part(&self, at: GuestPhysical) {
        if let Some(offset) = self.offset(at) {
            let _table = self.table.lock();
            self.zero(offset / PART * PART, PART);
        }
    }

    fn forget(&self, from: u64) -> Option<u64> {
        if self.marks.advances() == 0 {
            return None;
        }
        let [piece] = &self.piece;
        let end = from.saturating_add(LEAVES_A_STEP * LEAF);
        let mut table = self.table.lock();
        for offset in (from..end.min(piece.guest.size())).step_by(LEAF as usize) {
            // A leaf is mapped only when all of it is marked.
            if self.marks.clear_leaf(offset) {
                let at = piece.guest.base().checked_add(offset)?;
                let leaf = GuestRegion::new(at, LEAF)?;
                // The hypervisor's own accesses may have zeroed a leaf that no vCPU has touched: it is not mapped.
                let _ = self.store.with_tables(|memory| table.unmap(memory, leaf));
            }
        }
        (end < piece.guest.size()).then_some(end)
    }

    fn touch(&self, at: GuestPhysical) -> Touch {
        let Some(offset) = self.offset(at) else {
            return Touch::NoFrame;
        };
        let mut table = self.table.lock();
        let there = self
            .store
            .with_tables(|memory| table.translate(memory, at).is_some());
        if there {
            return Touch::Present;
        }
        let leaf = offset / LEAF * LEAF;
        if let Some(first) = self.marks.first_clear(leaf) {
            self.zero(first / PART * PART, PART);
            if self.marks.first_clear(leaf).is_some() {
                return Touch::Begun;
            }
        }
        let [piece] = &self.piece;
        let place = GuestRegion::new(at.align_down(LEAF), LEAF)
            .zip(piece.host.part(leaf, LEAF))
            .map(|(guest, host)| {
                self.store.with_tables(|memory| {
                    table.map(memory, guest, host.base(), Permissions::MEMORY)
                })
            });
        match place {
            Some(Ok(())) => Touch::FaultedIn,
            _ => Touch::NoFrame,
        }
    }
}

#[cfg(test)]
mod tests;
