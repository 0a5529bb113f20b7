//! Where the VMs' RAM goes.
//!
//! With placement `real` a guest's RAM lies at the same addresses for the guest and the host, so
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
use crate::memory::frames::FrameAllocator;

/// A gigapage: the largest leaf that three levels of table leave practical.
pub const GIGAPAGE: u64 = 1 << 30;
/// A megapage: a VM's memory is a multiple of it and begins at one.
pub const MEGAPAGE: u64 = 2 << 20;

/// Why the VMs could not all be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A VM's memory is not made of megapages.
    #[error("{size} bytes are no memory for a VM: they are not a positive multiple of 2 MiB")]
    BadSize {
        /// The VM's place in the list.
        index: usize,
        /// What it asked for.
        size: u64,
    },
    /// There is no room in one piece.
    #[error(
        "no room for a VM's {size} bytes: the largest piece of the host's memory that is left has \
         {largest}"
    )]
    NoRoom {
        /// The VM's place in the list.
        index: usize,
        /// What it asked for.
        size: u64,
        /// What there would have been.
        largest: u64,
    },
}

/// Takes RAM for VMs of these `sizes` in bytes; gives the places in the same order. The largest VM
/// chooses first.
///
/// # Errors
/// Where one cannot be placed. Then nothing has been taken.
pub fn place(
    allocator: &mut FrameAllocator,
    sizes: &[u64],
) -> Result<Vec<HostRegion>, PlacementError> {
    let mut trial = allocator.clone();
    let mut order: Vec<(usize, u64)> = sizes.iter().copied().enumerate().collect();
    order.sort_by_key(|&(_, size)| core::cmp::Reverse(size));
    let mut placed = Vec::new();
    for (index, size) in order {
        if size == 0 || !size.is_multiple_of(MEGAPAGE) {
            return Err(PlacementError::BadSize { index, size });
        }
        let in_gigapages = if size >= GIGAPAGE {
            trial.allocate(size, GIGAPAGE)
        } else {
            None
        };
        let place = in_gigapages
            .or_else(|| trial.allocate(size, MEGAPAGE))
            .ok_or_else(|| PlacementError::NoRoom {
                index,
                size,
                largest: largest(&trial),
            })?;
        placed.push((index, place));
    }
    placed.sort_by_key(|&(index, _)| index);
    *allocator = trial;
    Ok(placed.into_iter().map(|(_, place)| place).collect())
}

/// Bytes of the largest VM that would still find room.
pub fn largest(allocator: &FrameAllocator) -> u64 {
    allocator
        .free_regions()
        .iter()
        .filter_map(|region| {
            let base = region.base().align_up(MEGAPAGE)?;
            HostRegion::between(base, region.end().align_down(MEGAPAGE))
        })
        .map(HostRegion::size)
        .max()
        .unwrap_or(0)
}
