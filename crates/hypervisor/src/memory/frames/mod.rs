//! The frames of the host's memory: who owns which.
//!
//! [`Frames`] is used while the system is assembled. It gives frames of 4 KiB, 2 MiB and 1 GiB and larger pieces, each to one
//! owner, takes them back one by one or all that an owner has, and never gives one twice. A VM's memory and the tables of its
//! G-stage belong to that VM. Its lists lie on the heap.
//!
//! Large pieces come straight from the list of free regions ([`free`]). Single pages come from *sheets* of
//! 64 pages: a sheet is an owner's alone and goes back to the list when its last page does, so that the pages of one VM
//! do not break up the memory of others, and neighbours join to large frames again.
//!
//! When the system is assembled, what is left becomes a [`PagePool`](pool::PagePool), from which guests get single pages. There is no way back: after assembly no list of frames grows.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod free;
pub mod pool;
mod sorted;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use scheduler::VmId;

use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::frames::free::FreeRegions;
use crate::memory::frames::sorted::SortedMap;
use crate::memory::owned::OwnedRegion;
use crate::sort::sort_by_key;

/// The sizes in which translations map memory (privileged architecture, "Sv39": pages, megapages, gigapages).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameSize {
    /// 4 KiB.
    Page,
    /// 2 MiB.
    Megapage,
    /// 1 GiB.
    Gigapage,
}

impl FrameSize {
    /// From the smallest.
    pub const ALL: [Self; 3] = [Self::Page, Self::Megapage, Self::Gigapage];

    /// Bytes of a frame, and alignment of its address.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Page => PAGE_SIZE,
            Self::Megapage => 2 << 20,
            Self::Gigapage => 1 << 30,
        }
    }
}

/// Owner of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameOwner {
    /// The hypervisor, for good.
    Hypervisor,
    /// A VM, for as long as it is defined.
    Vm(VmId),
}

/// The memory is not its owner's, or not as it was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory {0} is not to be given back: it was not given so")]
pub struct NotGiven(pub HostRegion);

/// Pages of a sheet.
pub const SHEET_PAGES: u32 = u64::BITS;
/// Bytes of a sheet.
pub const SHEET: u64 = SHEET_PAGES as u64 * PAGE_SIZE;

/// Frames of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Holding {
    /// Large pieces, by their first address: their sizes in bytes.
    pieces: SortedMap<u64, u64>,
    /// Sheets, by their first address: which of their pages are in use, a bit each; never none.
    sheets: SortedMap<u64, u64>,
    /// The sheets that have pages left.
    open: SortedMap<u64, ()>,
}

impl Holding {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.sheets.is_empty()
    }
}

/// All frames of the host's memory that the hypervisor may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    free: FreeRegions,
    owned: SortedMap<FrameOwner, Holding>,
}

impl Frames {
    /// All whole pages of `memory` that no region of `reserved` touches. Both may overlap themselves and come in any order.
    ///
    /// # Safety
    /// All of `memory` is RAM, and every Rust object there, now or later, lies in `reserved` or in pieces that this
    /// gives.
    #[must_use]
    pub unsafe fn new(
        memory: impl IntoIterator<Item = HostRegion>,
        reserved: impl IntoIterator<Item = HostRegion>,
    ) -> Self {
        Self {
            free: FreeRegions::new(memory, reserved),
            owned: SortedMap::default(),
        }
    }

    /// Gives a frame to `owner`. `None` where there is none left of this size.
    pub fn give_frame(&mut self, owner: FrameOwner, size: FrameSize) -> Option<OwnedRegion> {
        self.give(owner, size.bytes(), size.bytes())
    }

    /// Gives `size` bytes in one piece to `owner`, rounded up to pages, at a multiple of `alignment`, a power of two. `None` where
    /// there is no such piece, and for a size of zero.
    pub fn give(&mut self, owner: FrameOwner, size: u64, alignment: u64) -> Option<OwnedRegion> {
        let piece = self.find(owner, size, alignment)?;
        // SAFETY: `new` was told that it is RAM without Rust objects, and no other code has it.
        Some(unsafe { OwnedRegion::new(piece) })
    }

    fn find(&mut self, owner: FrameOwner, size: u64, alignment: u64) -> Option<HostRegion> {
        let size = size
            .checked_next_multiple_of(PAGE_SIZE)
            .filter(|&size| size > 0)?;
        if size < SHEET && alignment.is_power_of_two() && alignment <= SHEET {
            return self.give_pages(owner, size, alignment.max(PAGE_SIZE));
        }
        let piece = self.free.allocate(size, alignment)?;
        self.holding(owner)?.pieces.insert(piece.base().raw(), size);
        Some(piece)
    }

    /// Frames of `owner`, which has none at first.
    fn holding(&mut self, owner: FrameOwner) -> Option<&mut Holding> {
        if self.owned.get(owner).is_none() {
            self.owned.insert(owner, Holding::default());
        }
        self.owned.get_mut(owner)
    }

    /// Takes back what [`Frames::give`] gave to `owner`: a large piece as it was given, of smaller ones any pages.
    ///
    /// # Errors
    /// The memory is not the owner's, or not as it was given. Nothing changes then.
    pub fn take_back(&mut self, owner: FrameOwner, piece: HostRegion) -> Result<(), NotGiven> {
        let result = self.take(owner, piece);
        if self.owned.get(owner).is_some_and(Holding::is_empty) {
            self.owned.remove(owner);
        }
        result
    }

    fn take(&mut self, owner: FrameOwner, piece: HostRegion) -> Result<(), NotGiven> {
        let holding = self.owned.get_mut(owner).ok_or(NotGiven(piece))?;
        let base = piece.base().raw();
        if holding.pieces.get(base) == Some(&piece.size()) {
            holding.pieces.remove(base);
            return self.set_free(piece);
        }
        let sheet = base & !(SHEET - 1);
        let pages = pages_of(piece, sheet).ok_or(NotGiven(piece))?;
        let used = holding.sheets.get_mut(sheet).ok_or(NotGiven(piece))?;
        if *used & pages != pages {
            return Err(NotGiven(piece));
        }
        *used &= !pages;
        if *used != 0 {
            holding.open.insert(sheet, ());
            return Ok(());
        }
        holding.sheets.remove(sheet);
        holding.open.remove(sheet);
        let whole = HostRegion::new(HostPhysical::new(sheet), SHEET).ok_or(NotGiven(piece))?;
        self.set_free(whole)
    }

    /// Takes back all that `owner` has.
    pub fn take_back_all(&mut self, owner: FrameOwner) {
        let Some(holding) = self.owned.remove(owner) else {
            return;
        };
        let pieces = holding.pieces.iter().map(|(base, size)| (base, *size));
        let sheets = holding.sheets.iter().map(|(base, _)| (base, SHEET));
        for (base, size) in pieces.chain(sheets) {
            if let Some(region) = HostRegion::new(HostPhysical::new(base), size) {
                // Given pieces are not free.
                let _ = self.free.release(region);
            }
        }
    }

    /// Owner of the page at `address`; `None` if the page is free, or none of the frames.
    #[must_use]
    pub fn owner_of(&self, address: HostPhysical) -> Option<FrameOwner> {
        let at = address.raw();
        let sheet = at & !(SHEET - 1);
        let page = 1 << ((at - sheet) / PAGE_SIZE);
        let has = |holding: &Holding| {
            let below = holding.pieces.last_up_to(at);
            below.is_some_and(|(base, size)| at - base < *size)
                || holding
                    .sheets
                    .get(sheet)
                    .is_some_and(|used| used & page != 0)
        };
        let found = self.owned.iter().find(|(_, holding)| has(holding));
        found.map(|(owner, _)| owner)
    }

    /// Bytes that `owner` uses.
    #[must_use]
    pub fn bytes_of(&self, owner: FrameOwner) -> u64 {
        self.owned.get(owner).map_or(0, |holding| {
            let pages: u64 = (holding.sheets.iter())
                .map(|(_, used)| u64::from(used.count_ones()))
                .sum();
            let pieces: u64 = holding.pieces.iter().map(|(_, size)| size).sum();
            pieces + pages * PAGE_SIZE
        })
    }

    /// Free bytes, without those in sheets.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free.free_bytes()
    }

    /// Whole sheets that are free, the smallest regions first.
    pub fn free_sheets(&self) -> Vec<HostRegion> {
        let regions = self.free.free_regions().iter();
        let whole = regions.filter_map(|region| {
            let base = region.base().align_up(SHEET)?;
            HostRegion::between(base, region.end().align_down(SHEET))
        });
        let mut whole: Vec<HostRegion> = whole.filter(|region| !region.is_empty()).collect();
        sort_by_key(&mut whole, |region| (region.size(), region.base()));
        whole
    }

    /// Free memory, from the lowest address.
    #[must_use]
    pub fn free_regions(&self) -> &[HostRegion] {
        self.free.free_regions()
    }

    /// Fewer pages than a sheet has, in one sheet.
    fn give_pages(&mut self, owner: FrameOwner, size: u64, alignment: u64) -> Option<HostRegion> {
        let count = (size / PAGE_SIZE) as u32;
        let step = alignment / PAGE_SIZE;
        let found = self.owned.get(owner).and_then(|holding| {
            let mut open = holding.open.iter();
            open.find_map(|(base, ())| {
                let used = *holding.sheets.get(base)?;
                Some((base, first_run(used, count, step)?))
            })
        });
        let (base, first) = match found {
            Some(found) => found,
            None => (self.free.allocate(SHEET, SHEET)?.base().raw(), 0),
        };
        let holding = self.holding(owner)?;
        let used = holding.sheets.get(base).copied().unwrap_or(0) | run(count) << first;
        holding.sheets.insert(base, used);
        if used == u64::MAX {
            holding.open.remove(base);
        } else {
            holding.open.insert(base, ());
        }
        HostRegion::new(HostPhysical::new(base + u64::from(first) * PAGE_SIZE), size)
    }

    fn set_free(&mut self, region: HostRegion) -> Result<(), NotGiven> {
        self.free
            .release(region)
            .map_err(|_in_use| NotGiven(region))
    }
}

/// Mask of the lowest `count` bits, fewer than 64.
const fn run(count: u32) -> u64 {
    (1 << count) - 1
}

/// The first place, a multiple of `step`, where so many bits of `used` are 0.
fn first_run(used: u64, count: u32, step: u64) -> Option<u32> {
    (0..=SHEET_PAGES - count)
        .step_by(step as usize)
        .find(|place| used & run(count) << place == 0)
}

/// The bits of `piece` in the sheet at `sheet`: whole pages, fewer than a sheet has.
fn pages_of(piece: HostRegion, sheet: u64) -> Option<u64> {
    let whole = piece.base().is_aligned(PAGE_SIZE) && piece.size().is_multiple_of(PAGE_SIZE);
    let inside = !piece.is_empty() && piece.end().raw() - sheet <= SHEET && piece.size() < SHEET;
    let first = (piece.base().raw() - sheet) / PAGE_SIZE;
    (whole && inside).then(|| run((piece.size() / PAGE_SIZE) as u32) << first)
}
