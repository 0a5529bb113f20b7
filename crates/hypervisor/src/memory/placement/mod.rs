//! Places of the VMs' RAM.
//!
//! With placements `real` and `resident` a guest's RAM lies in one piece, so
//! where it lies decides how large the leaves of its G-stage can be. A VM of a gibibyte or more
//! gets a place that begins on a gibibyte, if there is one; else any place on two mebibytes.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use crate::memory::address::HostRegion;
use crate::memory::frames::pool::NoPages;
use crate::memory::frames::{FrameOwner, FrameSize, Frames};
use crate::memory::owned::OwnedRegion;
use crate::memory::reclaim::MAX_PAGES_A_STEP;
use crate::sort::sort_by_key;

/// Reason why the VMs could not all be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A VM's memory is not made of megapages.
    #[error("{size} bytes are no memory for a VM: they are not a positive multiple of 2 MiB")]
    BadSize {
        /// The VM's place in the list.
        index: usize,
        /// Size that the VM asked for.
        size: u64,
    },
    /// Too few pages for the VMs on placement `paged`.
    #[error(transparent)]
    NoPages(#[from] NoPages),
    /// No room in one piece.
    #[error(
        "no room for a VM's {size} bytes: the largest piece of the host's memory that is left has \
         {largest}"
    )]
    NoRoom {
        /// The VM's place in the list.
        index: usize,
        /// Size that the VM asked for.
        size: u64,
        /// Largest size available.
        largest: u64,
    },
}

/// Gives RAM to owners, so many bytes to each; returns the places, in the same order. The largest is placed first.
///
/// # Errors
/// One cannot be placed. Then nothing has been given.
pub fn place(
    frames: &mut Frames,
    wanted: &[(FrameOwner, u64)],
) -> Result<Vec<OwnedRegion>, PlacementError> {
    let mut order: Vec<(usize, FrameOwner, u64)> = (wanted.iter().enumerate())
        .map(|(index, &(owner, size))| (index, owner, size))
        .collect();
    sort_by_key(&mut order, |&(index, _, size)| {
        (core::cmp::Reverse(size), index)
    });
    let mut placed = Vec::new();
    let mut failure = None;
    for (index, owner, size) in order {
        match place_one(frames, index, owner, size) {
            Ok(place) => placed.push((index, owner, place)),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    if let Some(error) = failure {
        for (_, owner, place) in placed {
            // It was given so a moment ago.
            let _ = frames.take_back(owner, place.region());
        }
        return Err(error);
    }
    sort_by_key(&mut placed, |&(index, ..)| index);
    Ok(placed.into_iter().map(|(_, _, place)| place).collect())
}

/// Pages that a demand-paged guest of so many bytes may have at a time: its memory, the tables for it, and
/// the pages that it has given back and that may still be in use ([`MAX_PAGES_A_STEP`] at most).
#[must_use]
pub const fn reservation(size: u64) -> u64 {
    let pages = size.div_ceil(FrameSize::Page.bytes());
    // One more of each level where the memory does not begin with its leaf.
    let last_level = size.div_ceil(FrameSize::Megapage.bytes()) + 1;
    let middle_level = size.div_ceil(FrameSize::Gigapage.bytes()) + 1;
    pages + last_level + middle_level + MAX_PAGES_A_STEP
}

fn place_one(
    frames: &mut Frames,
    index: usize,
    owner: FrameOwner,
    size: u64,
) -> Result<OwnedRegion, PlacementError> {
    let megapage = FrameSize::Megapage.bytes();
    let gigapage = FrameSize::Gigapage.bytes();
    if size == 0 || !size.is_multiple_of(megapage) {
        return Err(PlacementError::BadSize { index, size });
    }
    let in_gigapages = (size >= gigapage)
        .then(|| frames.give(owner, size, gigapage))
        .flatten();
    in_gigapages
        .or_else(|| frames.give(owner, size, megapage))
        .ok_or_else(|| PlacementError::NoRoom {
            index,
            size,
            largest: largest(frames),
        })
}

/// Bytes of the largest VM that would still find room.
#[must_use]
pub fn largest(frames: &Frames) -> u64 {
    let megapage = FrameSize::Megapage.bytes();
    let regions = frames.free_regions().iter();
    let whole = regions.filter_map(|region| {
        let base = region.base().align_up(megapage)?;
        HostRegion::between(base, region.end().align_down(megapage))
    });
    whole.map(HostRegion::size).max().unwrap_or(0)
}
