//! Memory in one piece that is zeroed where it is touched (placements `real` and `resident`).
//!
//! What lies in a VM's memory when the computer starts is another's. So nothing of it is mapped, and no access of the hypervisor's for the guest
//! reaches it, before it is zeroed. That happens in parts of [`PART`] bytes: a vCPU's touch zeroes one part of the leaf that it needs and goes back to
//! the guest, until the leaf is zero and is mapped; the hypervisor's own accesses zero the part that they need. All of it is work for the VM, in
//! the VM's time, and between any two parts the hart looks at its interrupts.
//!
//! A VM that starts again finds zeros, too: before it is loaded, its leaves leave the table and their bits are cleared, [`LEAVES_A_STEP`] at a time.
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

use alloc::boxed::Box;
use core::fmt::Debug;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::frames::FrameSize;
use crate::memory::gstage::{Permissions, TableMemory};
use crate::memory::guest::{Pages, Piece, Touch};
use crate::memory::owned::OwnedRegion;
use crate::memory::touched::SharedTable;

/// Bytes of a leaf, which is mapped as a whole.
const LEAF: u64 = FrameSize::Megapage.bytes();
/// Bytes that are zeroed at a time: a bit of a leaf's word each.
pub const PART: u64 = LEAF / u32::BITS as u64;
/// Leaves that one step of [`Pages::forget`] visits: those of a table.
pub const LEAVES_A_STEP: u64 = 512;
/// Leaves that one answer to [`Pages::contiguous_from`] reaches over at most.
const MAX_LEAVES: u64 = 8;

/// Bytes of the heap for memory of `size` bytes.
#[must_use]
pub const fn bytes(size: u64) -> usize {
    size.div_ceil(LEAF) as usize * size_of::<AtomicU32>()
}

/// Tables and memory of a guest, as the calling hart reaches them. Called under the table's lock.
pub trait ZeroStore: Debug + Send + Sync {
    /// Passes the tables' memory to `with`. It need not allocate: the tables down to the leaves stand.
    fn with_tables<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T;
    /// Zeroes memory that no other code and no device uses.
    fn zero(&self, part: OwnedRegion);
}

/// Memory of one guest, of which a part is zero or the guest's own where its bit is set, and anybody's where it is not.
#[derive(Debug)]
pub struct ZeroedOnTouch<S> {
    piece: [Piece; 1],
    table: SharedTable,
    store: S,
    /// A bit for each part, set once the part is zero. Set under the table's lock.
    leaves: Box<[AtomicU32]>,
}

impl<S: ZeroStore> ZeroedOnTouch<S> {
    /// Memory of which nothing is zero and nothing is in `table`, whose tables down to the leaves stand. `None` unless `piece` is made of leaves.
    pub fn new(piece: Piece, table: SharedTable, store: S) -> Option<Self> {
        let is_aligned = piece.guest.base().is_aligned(LEAF) && piece.host.base().is_aligned(LEAF);
        let is_whole = piece.guest.size().is_multiple_of(LEAF);
        let leaves = 0..piece.guest.size() / LEAF;
        (is_aligned && is_whole).then(|| Self {
            piece: [piece],
            table,
            store,
            leaves: leaves.map(|_| AtomicU32::new(0)).collect(),
        })
    }

    #[inline]
    fn leaf(&self, number: u64) -> Option<&AtomicU32> {
        self.leaves.get(usize::try_from(number).ok()?)
    }

    /// Zeroes one part, whose bit is not set. The table's lock is held.
    fn zero(&self, number: u64, leaf: &AtomicU32, part: u32) {
        let [piece] = &self.piece;
        let offset = number * LEAF + u64::from(part) * PART;
        if let Some(memory) = piece.host.part(offset, PART) {
            self.store.zero(memory);
            let bit = 1_u32.checked_shl(part).unwrap_or(0);
            leaf.fetch_or(bit, Ordering::Release);
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
        let (number, within) = (offset / LEAF, offset % LEAF);
        let leaf = self.leaf(number)?;
        let part = (within / PART) as u32;
        let is_zero = |leaf: &AtomicU32| leaf.load(Ordering::Acquire) >> part & 1 != 0;
        if !is_zero(leaf) {
            let _table = self.table.lock();
            if !is_zero(leaf) {
                self.zero(number, leaf, part);
            }
        }
        // To the end of the part, or of the whole leaves that follow.
        let is_whole = |number: u64| {
            let leaf = self.leaf(number);
            leaf.is_some_and(|leaf| leaf.load(Ordering::Acquire) == u32::MAX)
        };
        let whole = (number..number + MAX_LEAVES).take_while(|number| is_whole(*number));
        let end = match whole.last() {
            Some(last) => (last + 1) * LEAF,
            None => number * LEAF + (u64::from(part) + 1) * PART,
        };
        let [piece] = &self.piece;
        Some(piece.host.skip(offset).take(end - offset))
    }

    fn mapped(&self) -> &[Piece] {
        &self.piece
    }

    fn are_mapped_on_touch(&self) -> bool {
        true
    }

    fn forget(&self, from: u64) -> Option<u64> {
        let [piece] = &self.piece;
        let first = from / LEAF;
        let mut table = self.table.lock();
        for number in first..first.saturating_add(LEAVES_A_STEP) {
            let leaf = self.leaf(number)?;
            // A leaf is mapped only when all of it is zero.
            if leaf.swap(0, Ordering::AcqRel) == u32::MAX {
                let at = piece.guest.base().checked_add(number * LEAF)?;
                let region = GuestRegion::new(at, LEAF)?;
                // The hypervisor's own accesses may have zeroed a leaf that no vCPU has touched: it is not mapped.
                let _ = self
                    .store
                    .with_tables(|memory| table.unmap(memory, region));
            }
        }
        Some(first.saturating_add(LEAVES_A_STEP).saturating_mul(LEAF))
    }

    fn touch(&self, at: GuestPhysical) -> Touch {
        let Some((offset, leaf)) = self
            .offset(at)
            .and_then(|offset| Some((offset, self.leaf(offset / LEAF)?)))
        else {
            return Touch::NoFrame;
        };
        let number = offset / LEAF;
        let mut table = self.table.lock();
        let there = self
            .store
            .with_tables(|memory| table.translate(memory, at).is_some());
        if there {
            return Touch::Present;
        }
        let part = leaf.load(Ordering::Relaxed).trailing_ones();
        if part < u32::BITS {
            self.zero(number, leaf, part);
        }
        if leaf.load(Ordering::Relaxed) != u32::MAX {
            return Touch::Begun;
        }
        let [piece] = &self.piece;
        let place = GuestRegion::new(at.align_down(LEAF), LEAF)
            .zip(piece.host.part(number * LEAF, LEAF))
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
