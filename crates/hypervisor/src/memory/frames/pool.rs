//! Single pages for guests while the system runs.
//!
//! The pool is made when the system is assembled, with as many pages as all guests may have at a time, and a fixed entry for each *sheet*
//! of 64 pages. No operation allocates, and each takes the same time whatever guests have done.
//!
//! A sheet belongs to one guest. A guest gets a further sheet only when all pages of its sheets are in use, so that a guest with a
//! reservation of `n` pages never has more than `n / 64` sheets, rounded up, in whatever order it gives pages back. The pool has that many
//! sheets for each guest. Hence *a guest within its reservation never lacks a page*, whatever other guests do.

#[cfg(test)]
pub(in crate::memory) mod tests;

use core::mem;

use abi::system::MAX_VMS;
use alloc::boxed::Box;
use alloc::vec::Vec;
use scheduler::VmId;

use super::{FrameOwner, Frames, NotGiven, SHEET, SHEET_PAGES};
use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;

/// Link of a list that leads nowhere.
const NONE: u32 = u32::MAX;

/// Entry of a sheet. An entry of zeros stands for a sheet that has had no owner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sheet {
    /// Pages in use, a bit each.
    used: u64,
    /// Neighbours in the list that the sheet is in.
    previous: u32,
    next: u32,
    /// Epoch of its owner in which it was given.
    epoch: u32,
    owner: u16,
}

/// Bytes of a sheet's entry.
const ENTRY_BYTES: u64 = size_of::<Sheet>() as u64;

/// A list of sheets.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// Sheets that lie behind each other in the host's memory.
#[derive(Clone, Copy, Debug)]
struct Part {
    memory: HostRegion,
    /// Number of the first sheet.
    first: u32,
}

/// Frames of a guest.
#[derive(Clone, Copy, Debug)]
struct Holding {
    /// Sheets with a page left, and sheets without.
    open: List,
    full: List,
    /// Grows when the guest gives everything back at once.
    epoch: u32,
    sheets: u32,
    pages: u64,
    /// Sheets that the guest may have at most.
    limit: u32,
}

impl Holding {
    const NOTHING: Self = Self {
        open: List::EMPTY,
        full: List::EMPTY,
        epoch: 0,
        sheets: 0,
        pages: 0,
        limit: 0,
    };
}

/// Pages for guests.
#[derive(Debug)]
pub struct PagePool {
    parts: Box<[Part]>,
    sheets: &'static mut [Sheet],
    free: List,
    /// Sheets below this number have had an owner.
    fresh: u32,
    holdings: Box<[Holding; MAX_VMS]>,
    /// Sheets that are free.
    free_sheets: u32,
    /// Free bytes of the host's memory outside the pool.
    outside: u64,
}

/// Too few pages for the guests on placement `paged`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no room for {wanted} pages of VMs whose memory comes when it is touched, and for their tables: {left} are left"
)]
pub struct NoPages {
    /// Pages that are wanted.
    pub wanted: u64,
    /// Pages that are left.
    pub left: u64,
}

/// Number of sheets that a guest with so many pages has at most.
const fn sheets_for(pages: u64) -> u64 {
    pages.div_ceil(SHEET_PAGES as u64)
}

impl PagePool {
    /// A pool of the sheets in `memory`, of which each region is whole sheets, for guests with these reservations of pages. `sheets` has a
    /// default entry for each sheet. `outside` is what is free besides.
    ///
    /// # Safety
    /// All of `memory` is RAM that no other code uses, and no Rust object lies there as long as the hypervisor runs.
    #[must_use]
    pub unsafe fn new(
        memory: &[HostRegion],
        sheets: &'static mut [Sheet],
        reservations: &[(VmId, u64)],
        outside: u64,
    ) -> Self {
        let mut first = 0;
        let parts = memory.iter().map(|&memory| {
            let part = Part { memory, first };
            first += (memory.size() / SHEET) as u32;
            part
        });
        let parts: Box<[Part]> = parts.collect();
        let mut holdings = Box::new([Holding::NOTHING; MAX_VMS]);
        for (vm, pages) in reservations {
            if let Some(holding) = holdings.get_mut(vm.index()) {
                holding.limit = sheets_for(*pages) as u32;
            }
        }
        Self {
            free_sheets: first.min(sheets.len() as u32),
            parts,
            sheets,
            free: List::EMPTY,
            fresh: 0,
            holdings,
            outside,
        }
    }

    /// Pool of the free memory, in which as many pages are reserved for each guest as `reservations` says. The pool's entries lie in
    /// memory that is taken here, and is cleared by `memory`.
    ///
    /// # Errors
    /// [`NoPages`] where there are too few.
    pub fn of_frames(
        mut frames: Frames,
        reservations: &[(VmId, u64)],
        memory: &impl HostMemory,
    ) -> Result<Self, NoPages> {
        let sheets: u64 = reservations
            .iter()
            .map(|(_, pages)| sheets_for(*pages))
            .sum();
        let no_pages = |left: u64| NoPages {
            wanted: sheets * u64::from(SHEET_PAGES),
            left: left * u64::from(SHEET_PAGES),
        };
        let entries: &'static mut [Sheet] = match sheets {
            0 => &mut [],
            _ => {
                let bytes = sheets.checked_mul(ENTRY_BYTES).ok_or(no_pages(0))?;
                let place = frames.give(FrameOwner::Hypervisor, bytes, PAGE_SIZE);
                let place = place.ok_or(no_pages(0))?;
                memory.zero(place);
                // SAFETY: the place is the hypervisor's for good, no other code has its address, it is aligned to a page, and has as many bytes.
                // Zeros are an entry.
                unsafe {
                    let first = place.base().raw() as *mut Sheet;
                    core::slice::from_raw_parts_mut(first, sheets as usize)
                }
            }
        };
        let mut left = sheets;
        let mut parts = Vec::new();
        for region in frames.free_sheets() {
            let part = HostRegion::new(region.base(), region.size().min(left * SHEET));
            parts.extend(part.filter(|part| !part.is_empty()));
            left -= (region.size() / SHEET).min(left);
        }
        if left > 0 || sheets > u64::from(u32::MAX) {
            return Err(no_pages(sheets - left));
        }
        let outside = frames.free_bytes().saturating_sub(sheets * SHEET);
        // SAFETY: the parts are free, and these frames are not used any more.
        Ok(unsafe { Self::new(&parts, entries, reservations, outside) })
    }

    /// Gives a page to a guest. `None` if the guest has as many as were reserved for it.
    pub fn give(&mut self, vm: VmId) -> Option<OwnedRegion> {
        let open = self.holdings.get(vm.index())?.open.first;
        let number = match open {
            NONE => self.give_sheet(vm)?,
            number => number,
        };
        let sheet = self.sheets.get_mut(number as usize)?;
        let page = sheet.used.trailing_ones();
        sheet.used |= 1_u64.checked_shl(page)?;
        let is_full = sheet.used == u64::MAX;
        let holding = self.holdings.get_mut(vm.index())?;
        holding.pages += 1;
        if is_full {
            remove(self.sheets, &mut holding.open, number);
            push(self.sheets, &mut holding.full, number);
        }
        let base = self
            .base(number)?
            .checked_add(u64::from(page) * PAGE_SIZE)?;
        let page = HostRegion::new(base, PAGE_SIZE)?;
        // SAFETY: the sheet is the guest's, and lies in memory of which `new` was told so.
        Some(unsafe { OwnedRegion::new(page) })
    }

    /// Gives a guest a sheet, which is the first of its open ones.
    fn give_sheet(&mut self, vm: VmId) -> Option<u32> {
        let holding = self.holdings.get_mut(vm.index())?;
        if holding.sheets >= holding.limit {
            return None;
        }
        let number = match self.free.first {
            NONE => {
                let number = self.fresh;
                self.fresh = number.checked_add(1)?;
                number
            }
            number => {
                remove(self.sheets, &mut self.free, number);
                number
            }
        };
        *self.sheets.get_mut(number as usize)? = Sheet {
            epoch: holding.epoch,
            owner: vm.index() as u16,
            ..Sheet::default()
        };
        holding.sheets += 1;
        self.free_sheets = self.free_sheets.saturating_sub(1);
        push(self.sheets, &mut holding.open, number);
        Some(number)
    }

    /// Takes a page of a guest's back.
    ///
    /// # Errors
    /// The page is not that guest's. Nothing changes then.
    pub fn take_back(&mut self, vm: VmId, page: HostRegion) -> Result<(), NotGiven> {
        self.take(vm, page).ok_or(NotGiven(page))
    }

    fn take(&mut self, vm: VmId, page: HostRegion) -> Option<()> {
        let is_page = page.base().is_aligned(PAGE_SIZE) && page.size() == PAGE_SIZE;
        let (number, bit) = self.place(page.base()).filter(|_| is_page)?;
        let holding = self.holdings.get_mut(vm.index())?;
        let sheet = self.sheets.get_mut(number as usize)?;
        let is_owner = usize::from(sheet.owner) == vm.index() && sheet.epoch == holding.epoch;
        if !is_owner || sheet.used & bit == 0 {
            return None;
        }
        let was_full = sheet.used == u64::MAX;
        sheet.used &= !bit;
        let is_empty = sheet.used == 0;
        holding.pages = holding.pages.saturating_sub(1);
        let before = match was_full {
            true => &mut holding.full,
            false => &mut holding.open,
        };
        if was_full || is_empty {
            remove(self.sheets, before, number);
        }
        if is_empty {
            holding.sheets = holding.sheets.saturating_sub(1);
            self.free_sheets += 1;
            push(self.sheets, &mut self.free, number);
        } else if was_full {
            push(self.sheets, &mut holding.open, number);
        }
        Some(())
    }

    /// Takes all pages of a guest's back, in a constant time: its lists are joined to the free list. What their entries say of the owner
    /// belongs to an epoch that is over.
    pub fn take_back_all(&mut self, vm: VmId) {
        let Some(holding) = self.holdings.get_mut(vm.index()) else {
            return;
        };
        let nothing = Holding {
            epoch: holding.epoch.wrapping_add(1),
            limit: holding.limit,
            ..Holding::NOTHING
        };
        let had = mem::replace(holding, nothing);
        self.free_sheets += had.sheets;
        join(self.sheets, &mut self.free, had.full);
        join(self.sheets, &mut self.free, had.open);
    }

    /// Bytes of a guest's pages.
    #[must_use]
    pub fn bytes_of(&self, vm: VmId) -> u64 {
        let holding = self.holdings.get(vm.index());
        holding.map_or(0, |holding| holding.pages * PAGE_SIZE)
    }

    /// Bytes of the host's memory in sheets without an owner.
    #[must_use]
    pub const fn free_bytes(&self) -> u64 {
        self.outside
            .saturating_add((self.free_sheets as u64).saturating_mul(SHEET))
    }

    /// Address of a sheet. The parts are as many as the board has regions of memory.
    fn base(&self, number: u32) -> Option<HostPhysical> {
        let part = self.parts.iter().rfind(|part| part.first <= number)?;
        let before = u64::from(number.checked_sub(part.first)?) * SHEET;
        let base = part.memory.base().checked_add(before)?;
        part.memory.contains(base).then_some(base)
    }

    /// Number of the sheet that an address lies in, and the bit of its page.
    fn place(&self, at: HostPhysical) -> Option<(u32, u64)> {
        let part = self.parts.iter().find(|part| part.memory.contains(at))?;
        let before = at.raw().checked_sub(part.memory.base().raw())?;
        let number = part.first.checked_add((before / SHEET) as u32)?;
        Some((number, 1 << (before % SHEET / PAGE_SIZE)))
    }
}

/// Puts a sheet in front of a list.
fn push(sheets: &mut [Sheet], list: &mut List, number: u32) {
    let next = mem::replace(&mut list.first, number);
    match sheets.get_mut(next as usize) {
        Some(next) => next.previous = number,
        None => list.last = number,
    }
    if let Some(sheet) = sheets.get_mut(number as usize) {
        (sheet.previous, sheet.next) = (NONE, next);
    }
}

/// Takes a sheet out of the list that it is in.
fn remove(sheets: &mut [Sheet], list: &mut List, number: u32) {
    let Some(&Sheet { previous, next, .. }) = sheets.get(number as usize) else {
        return;
    };
    match sheets.get_mut(previous as usize) {
        Some(previous) => previous.next = next,
        None => list.first = next,
    }
    match sheets.get_mut(next as usize) {
        Some(next) => next.previous = previous,
        None => list.last = previous,
    }
}

/// Puts all of another list in front of a list.
fn join(sheets: &mut [Sheet], list: &mut List, other: List) {
    if let Some(last) = sheets.get_mut(other.last as usize) {
        last.next = list.first;
        match sheets.get_mut(list.first as usize) {
            Some(first) => first.previous = other.last,
            None => list.last = other.last,
        }
        list.first = other.first;
    }
}
