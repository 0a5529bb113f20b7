//! A guest's memory: its guest-physical addresses, and their places in the host's memory.
//!
//! A guest-physical range is one or several host ranges: one under placement `real` (the same addresses) and `resident` (a
//! constant away), many where the pages are scattered: [`Pages`]. [`GuestMemory`] answers for all of them, so that no other
//! code computes a host address. It reaches the bytes through [`HostMemory`], and so runs on any computer.
//!
//! A guest changes its memory whenever it likes, while the hypervisor reads it too. Every access here is one of a byte or of an
//! aligned word; a value that is needed twice is read once and kept.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub use self::bytes::GuestBytes;
pub use self::host::TheHost;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical, PAGE_SIZE};
use crate::memory::owned::OwnedRegion;
use crate::memory::zeroed::marks::Marks;

/// The host's memory. Each access is at the beginning of its region; one that does not fit there, or is not aligned, reads zeros and
/// writes nothing.
pub trait HostMemory {
    /// Reads a byte.
    fn byte(&self, at: OwnedRegion) -> u8;
    /// Writes a byte.
    fn set_byte(&self, at: OwnedRegion, value: u8);
    /// Writes a word of 32 bits, in one access.
    fn set_word(&self, at: OwnedRegion, value: u32);
    /// Reads a doubleword in one access.
    fn doubleword(&self, at: OwnedRegion) -> u64;
    /// Reads a halfword in one access.
    fn half(&self, at: OwnedRegion) -> u16;
    /// Writes a halfword in one access.
    fn set_half(&self, at: OwnedRegion, value: u16);
    /// Writes a doubleword in one access.
    fn set_doubleword(&self, at: OwnedRegion, value: u64);
    /// Reads two doublewords, each in one access.
    fn pair(&self, at: OwnedRegion) -> [u64; 2] {
        [self.doubleword(at), self.doubleword(at.skip(8))]
    }
    /// Writes two doublewords, each in one access.
    fn set_pair(&self, at: OwnedRegion, values: [u64; 2]) {
        let [first, second] = values;
        self.set_doubleword(at, first);
        self.set_doubleword(at.skip(8), second);
    }
    /// Copies at most `bytes` from one region to another, as many as both have. A guest may change both meanwhile: each byte is read
    /// once and written once.
    fn move_bytes(&self, from: OwnedRegion, to: OwnedRegion, bytes: u64) {
        for offset in 0..bytes.min(from.size()).min(to.size()) {
            self.set_byte(to.skip(offset), self.byte(from.skip(offset)));
        }
    }
    /// Copies `data`, as much as the region has room for. No other hart or device uses the memory meanwhile.
    fn copy(&self, at: OwnedRegion, data: &[u8]);
    /// Zeroes the region. No other hart or device uses the memory meanwhile.
    fn zero(&self, at: OwnedRegion);
}

/// A piece of a guest's memory that lies in one piece in the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Address for the guest.
    pub guest: GuestRegion,
    /// Address on the host: as many bytes.
    pub host: OwnedRegion,
}

impl Piece {
    /// Host memory from `from` to the end of this piece.
    #[inline]
    fn contiguous_from(&self, from: GuestPhysical) -> Option<OwnedRegion> {
        let before = from.raw().checked_sub(self.guest.base().raw())?;
        (before < self.guest.size()).then(|| self.host.skip(before))
    }
}

/// Reason why pieces are no guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPieces {
    /// No piece, or an empty one.
    #[error("a guest's memory has a piece without a byte")]
    Empty,
    /// Two follow each other with a gap, or overlap.
    #[error("the pieces of a guest's memory do not follow each other at {0}")]
    NotInOrder(GuestPhysical),
    /// One is not made of pages.
    #[error("the piece of a guest's memory at {0} is not made of pages")]
    NotPages(GuestPhysical),
    /// One ends beyond 64 bits, or is not as long for the guest as it is in the host's memory.
    #[error("a guest's memory does not fit the host's addresses at {0}")]
    OutOfReach(GuestPhysical),
}

/// Outcome of touching a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The page was given a frame.
    FaultedIn,
    /// The page had a frame.
    Present,
    /// Part of what is to be zeroed before the page is mapped has been zeroed. The access is repeated.
    Begun,
    /// The page is not the guest's, or no frame is free.
    NoFrame,
}

/// Names no more than the trait: a supertrait would keep the code of every placement's `Debug` in the image.
impl fmt::Debug for dyn Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pages")
    }
}

/// Places of the pages of one guest's memory, by the VM's placement.
///
/// A placement whose pages come on the first touch (`memory::touched`) takes them in [`Pages::contiguous_from`], under a lock of its own, and maps
/// none of them from the start.
pub trait Pages: Send + Sync {
    /// Host memory at `from` and the bytes that follow in one piece with it. `None` if the byte is not the guest's, or
    /// there is no frame for it.
    fn contiguous_from(&self, from: GuestPhysical) -> Option<OwnedRegion>;

    /// The pieces that the G-stage table maps from the start, in the order of the guest-physical addresses.
    fn mapped(&self) -> &[Piece];

    /// Tests whether a page is mapped on its first touch.
    fn are_demand_paged(&self) -> bool {
        false
    }

    /// Tests whether nothing is mapped before its first touch, wherever its frames come from.
    fn are_mapped_on_touch(&self) -> bool {
        self.are_demand_paged()
    }

    /// Gives the page at `at` a frame and maps it, if the memory is mapped on touch; or does a part of what this takes.
    fn touch(&self, at: GuestPhysical) -> Touch {
        let _ = at;
        Touch::NoFrame
    }

    /// Frame of the page at `page`, if the memory is demand-paged and the page has one.
    fn frame(&self, page: GuestPhysical) -> Option<HostPhysical> {
        let _ = page;
        None
    }

    /// Takes the page at `page` out of the table, if the memory is demand-paged: its next touch gives it another frame. Returns whether it was mapped.
    /// The frame stays the guest's until it is [freed](Self::free).
    fn unmap(&self, page: GuestPhysical) -> bool {
        let _ = page;
        false
    }

    /// Frees the frame of a page that was [taken out](Self::unmap), and that is not in use any more.
    fn free(&self, frame: HostPhysical) {
        let _ = frame;
    }

    /// Bytes of the pages and their tables, if the memory is demand-paged.
    fn resident(&self) -> Option<u64> {
        None
    }

    /// Gives all demand-paged pages back. No vCPU of the guest runs, and no hart or device accesses its memory.
    fn give_back(&self) {}

    /// Marks of the pages that may be reached without [`Self::contiguous_from`], if the memory is zeroed where it is touched.
    fn marks(&self) -> Option<&Arc<Marks>> {
        None
    }

    /// Zeroes what is not zero of the bytes around `at`, if the memory is zeroed where it is touched: more than the next access needs, since others
    /// follow it.
    fn zero_part(&self, at: GuestPhysical) {
        let _ = at;
    }

    /// Takes memory that is zeroed where it is touched out of the table, so that its next touch zeroes it again: a bounded part of it, from offset
    /// `from`. Returns the offset of the next part, `None` after the last one. No vCPU of the guest runs, no hart or device accesses its memory, and
    /// each vCPU drops its translations before it runs again.
    fn forget(&self, from: u64) -> Option<u64> {
        let _ = from;
        None
    }
}

/// Pages that stay where they are: pieces in the order of their guest-physical addresses, without gaps; one at least.
#[derive(Debug)]
struct FixedPieces(Vec<Piece>);

impl Pages for FixedPieces {
    fn contiguous_from(&self, from: GuestPhysical) -> Option<OwnedRegion> {
        // The pieces have no gaps, so the last that begins at or below the address is the one.
        let behind = self.0.partition_point(|piece| piece.guest.base() <= from);
        self.0.get(behind.checked_sub(1)?)?.contiguous_from(from)
    }

    fn mapped(&self) -> &[Piece] {
        &self.0
    }
}

/// The memory of one guest: one range of guest-physical addresses, whose pages lie wherever the placement has put them.
#[derive(Debug)]
pub struct GuestMemory {
    region: GuestRegion,
    /// The piece that is all of it, where it has one only and stays there: nearly always, and found without a search.
    whole: Option<Piece>,
    /// The same of memory that is zeroed where it is touched, with the marks of what was.
    marked: Option<(Piece, Arc<Marks>)>,
    /// Copies of [`Pages::are_demand_paged`] and [`Pages::are_mapped_on_touch`], for each fault.
    demand_paged: bool,
    on_touch: bool,
    pages: Box<dyn Pages>,
}

impl GuestMemory {
    /// The memory that these pieces make up, which must follow each other from the lowest guest-physical address on.
    ///
    /// # Errors
    /// [`BadPieces`].
    pub fn new(pieces: Vec<Piece>) -> Result<Self, BadPieces> {
        let first = pieces.first().ok_or(BadPieces::Empty)?.guest.base();
        let mut end = first;
        for piece in &pieces {
            let base = piece.guest.base();
            if piece.guest.is_empty() {
                return Err(BadPieces::Empty);
            }
            if base != end {
                return Err(BadPieces::NotInOrder(base));
            }
            let host = piece.host;
            let size = piece.guest.size();
            let pages = base.is_aligned(PAGE_SIZE)
                && host.base().is_aligned(PAGE_SIZE)
                && size.is_multiple_of(PAGE_SIZE);
            if !pages {
                return Err(BadPieces::NotPages(base));
            }
            if host.size() != size {
                return Err(BadPieces::OutOfReach(base));
            }
            end = piece.guest.end();
        }
        let region = GuestRegion::between(first, end).ok_or(BadPieces::Empty)?;
        let whole = match pieces[..] {
            [piece] => Some(piece),
            _ => None,
        };
        let pages = Box::new(FixedPieces(pieces));
        Ok(Self {
            region,
            whole,
            marked: None,
            demand_paged: false,
            on_touch: false,
            pages,
        })
    }

    /// Memory at `region` whose pages `pages` keeps.
    #[must_use]
    pub fn of_pages(region: GuestRegion, pages: Box<dyn Pages>) -> Self {
        let marked = match pages.mapped() {
            [piece] => pages.marks().map(|marks| (*piece, Arc::clone(marks))),
            _ => None,
        };
        Self {
            region,
            whole: None,
            marked,
            demand_paged: pages.are_demand_paged(),
            on_touch: pages.are_mapped_on_touch(),
            pages,
        }
    }

    /// Tests whether pages get a frame on their first touch, and may be given back.
    #[inline]
    #[must_use]
    pub const fn is_demand_paged(&self) -> bool {
        self.demand_paged
    }

    /// Tests whether pages are mapped zeroed on their first touch, rather than from the start.
    #[inline]
    #[must_use]
    pub const fn is_mapped_on_touch(&self) -> bool {
        self.on_touch
    }

    /// Handles a vCPU's touch of the byte at `at`, which was not mapped.
    pub fn touch(&self, at: GuestPhysical) -> Touch {
        self.pages.touch(at)
    }

    /// Pages, for code that gives some of them back.
    #[must_use]
    pub fn pages(&self) -> &dyn Pages {
        &*self.pages
    }

    /// A number that has grown since if memory was zeroed for a touch meanwhile.
    #[must_use]
    pub fn advances(&self) -> u64 {
        let marked = self.marked.as_ref();
        marked.map_or(0, |(_, marks)| marks.advances())
    }

    /// Gives all demand-paged pages back. No vCPU of the guest runs, and no hart or device accesses its memory.
    pub fn give_back(&self) {
        self.pages.give_back();
    }

    /// Memory in one piece, whose host addresses are the guest's plus a constant (placement `real`: plus nothing).
    ///
    /// # Errors
    /// [`BadPieces`].
    pub fn in_one_piece(guest: GuestRegion, host: OwnedRegion) -> Result<Self, BadPieces> {
        Self::new([Piece { guest, host }].into())
    }

    /// All addresses of the guest's memory.
    #[must_use]
    pub const fn region(&self) -> GuestRegion {
        self.region
    }

    /// The pieces that the G-stage table maps from the start, in the order of the guest-physical addresses.
    #[must_use]
    pub fn mapped(&self) -> &[Piece] {
        self.pages.mapped()
    }

    /// Address of the guest's memory for a device, which reaches it by the host's addresses: if the memory is in one piece, and not at
    /// the guest's own addresses.
    #[must_use]
    pub fn place_for_devices(&self) -> Option<HostPhysical> {
        match self.mapped() {
            [piece] => {
                Some(piece.host.base()).filter(|host| host.raw() != piece.guest.base().raw())
            }
            _ => None,
        }
    }

    /// The piece that is all of it, where there is one that stays where it is, with the marks of what may be reached there. Without marks, all may.
    #[must_use]
    pub fn whole(&self) -> Option<(Piece, Option<Arc<Marks>>)> {
        let marked = self.marked.as_ref();
        let marked = marked.map(|(piece, marks)| (*piece, Some(Arc::clone(marks))));
        self.whole.map(|piece| (piece, None)).or(marked)
    }

    /// Tests whether the byte at `address` is the guest's.
    #[must_use]
    pub fn holds(&self, address: GuestPhysical) -> bool {
        self.region.contains(address)
    }

    /// Host memory at `from` and the bytes that follow in one piece with it, `wanted` of which the caller needs.
    #[inline]
    fn contiguous_from(&self, from: GuestPhysical, wanted: u64) -> Option<OwnedRegion> {
        match &self.whole {
            Some(piece) => piece.contiguous_from(from),
            None => self.scattered_from(from, wanted),
        }
    }

    /// The same where the memory is not in one piece, or not all of it is zero yet.
    fn scattered_from(&self, from: GuestPhysical, wanted: u64) -> Option<OwnedRegion> {
        if let Some((piece, marks)) = &self.marked {
            let before = from.raw().checked_sub(self.region.base().raw())?;
            // Nothing outside the piece is marked.
            if marks.are_set(before, wanted) {
                return piece.host.part(before, wanted);
            }
        }
        let is_here = self.region.contains(from);
        is_here.then(|| self.pages.contiguous_from(from))?
    }

    /// Host memory of `size` bytes from `address`, if all are the guest's and in one piece. An aligned word is
    /// always in one piece: pieces are made of pages.
    #[must_use]
    #[inline]
    pub fn in_one(&self, address: GuestPhysical, size: u64) -> Option<OwnedRegion> {
        self.contiguous_from(address, size)?.part(0, size)
    }

    /// The host ranges that a guest-physical range is, in its order; `None` where not all of it is the guest's.
    #[must_use]
    pub fn ranges(&self, of: GuestRegion) -> Option<impl Iterator<Item = OwnedRegion>> {
        self.region.covers(of).then(|| {
            let mut from = of.base();
            core::iter::from_fn(move || {
                let left = of.end().raw().checked_sub(from.raw())?;
                let range = self.contiguous_from(from, left).filter(|_| left > 0)?;
                let range = range.take(left);
                from = from.checked_add(range.size())?;
                Some(range)
            })
        })
    }

    /// The guest's bytes from `address`, if all of them are its memory.
    #[must_use]
    pub fn bytes(&self, address: GuestPhysical, length: u64) -> Option<GuestBytes<'_>> {
        let region = GuestRegion::new(address, length)?;
        self.region.covers(region).then_some(GuestBytes {
            memory: self,
            region,
        })
    }

    /// The doubleword at `address`, if it is aligned and the guest's.
    #[inline]
    #[must_use]
    pub fn doubleword(&self, address: GuestPhysical, host: &impl HostMemory) -> Option<u64> {
        let at = address.is_aligned(8).then(|| self.in_one(address, 8))??;
        at.fits(8).then(|| host.doubleword(at))
    }

    /// Writes the doubleword at `address`, if it is aligned and the guest's. `None` if not, or if no frame is free.
    #[must_use]
    pub fn set_doubleword(
        &self,
        address: GuestPhysical,
        value: u64,
        host: &impl HostMemory,
    ) -> Option<()> {
        let at = address.is_aligned(8).then(|| self.in_one(address, 8))??;
        at.fits(8).then(|| host.set_doubleword(at, value))
    }
}

/// The guest's memory, and the host's in which it lies, and the queues of devices too.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    pub guest: &'a GuestMemory,
    pub host: TheHost<'a>,
}

mod bytes;
mod host;
#[cfg(test)]
mod tests;
