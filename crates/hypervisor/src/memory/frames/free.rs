//! Free physical memory, as a sorted list of regions.
//!
//! [`FreeRegions`] begins with the board's RAM less the parts in use (the firmware,
//! the hypervisor's own image, the system image, the board's device tree), and hands out aligned
//! blocks of whole pages.
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
#[path = "free_tests.rs"]
mod tests;

use alloc::vec::Vec;

use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};

/// The free pages of the host's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeRegions {
    /// Disjoint, not empty, on page boundaries, in ascending order, no two touching.
    free: Vec<HostRegion>,
}

/// Memory given back was not all in use: some of it was free already, or is no whole page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pages {0} cannot be freed: they are not all in use")]
pub struct NotInUse(pub HostRegion);

impl FreeRegions {
    /// All whole pages of `memory` that no region of `reserved` touches. Both may overlap
    /// themselves and come in any order.
    pub fn new(
        memory: impl IntoIterator<Item = HostRegion>,
        reserved: impl IntoIterator<Item = HostRegion>,
    ) -> Self {
        let mut allocator = Self::default();
        for region in memory {
            if let Some(pages) = whole_pages_inside(region) {
                // What another region of `memory` has brought is not brought twice.
                allocator.carve(pages);
                allocator.insert(pages);
            }
        }
        for region in reserved.into_iter().filter(|region| !region.is_empty()) {
            allocator.carve(pages_touched(region));
        }
        allocator
    }

    /// The free regions, lowest first.
    pub fn free_regions(&self) -> &[HostRegion] {
        &self.free
    }

    /// Bytes that are free.
    pub fn free_bytes(&self) -> u64 {
        self.free
            .iter()
            .fold(0, |sum: u64, region| sum.saturating_add(region.size()))
    }

    /// Takes a block of `size` bytes (rounded up to pages) at a multiple of `alignment`, a power
    /// of two, from the smallest free region that has one, so that the large ones stay whole.
    /// `None` where there is none, and for a size of zero.
    pub fn allocate(&mut self, size: u64, alignment: u64) -> Option<HostRegion> {
        let size = size
            .checked_next_multiple_of(PAGE_SIZE)
            .filter(|&size| size > 0)?;
        let alignment = Some(alignment)
            .filter(|value| value.is_power_of_two())?
            .max(PAGE_SIZE);
        let block = self
            .free
            .iter()
            .filter_map(|&region| Some((region.size(), lowest_block(region, size, alignment)?)))
            .min_by_key(|&(size, _)| size)
            .map(|(_, block)| block)?;
        self.carve(block);
        Some(block)
    }

    /// Gives a block back.
    ///
    /// # Errors
    /// Where part of it is free already, or it is not made of pages. Nothing changes then.
    pub fn release(&mut self, region: HostRegion) -> Result<(), NotInUse> {
        let free_already = self.free.iter().any(|holder| holder.overlaps(region));
        if free_already || !is_pages(region) {
            return Err(NotInUse(region));
        }
        self.insert(region);
        Ok(())
    }

    /// Takes out of the list what `region` covers.
    fn carve(&mut self, region: HostRegion) {
        let before = core::mem::take(&mut self.free);
        for free in before {
            if !free.overlaps(region) {
                self.free.push(free);
                continue;
            }
            let below = HostRegion::between(free.base(), region.base());
            let above = HostRegion::between(region.end(), free.end());
            self.free.extend(
                [below, above]
                    .into_iter()
                    .flatten()
                    .filter(|part| !part.is_empty()),
            );
        }
    }

    /// Adds a region that overlaps none, and joins it to its neighbours.
    fn insert(&mut self, region: HostRegion) {
        let at = self
            .free
            .partition_point(|free| free.base() < region.base());
        self.free.insert(at, region);
        self.free.dedup_by(|next, previous| {
            let touch = previous.end() == next.base();
            if touch && let Some(joined) = HostRegion::between(previous.base(), next.end()) {
                *previous = joined;
            }
            touch
        });
    }
}

/// The lowest block of `size` bytes at a multiple of `alignment` inside `region`.
pub(crate) fn lowest_block(region: HostRegion, size: u64, alignment: u64) -> Option<HostRegion> {
    let base = region.base().align_up(alignment)?;
    HostRegion::new(base, size).filter(|block| region.covers(*block))
}

fn is_pages(region: HostRegion) -> bool {
    !region.is_empty()
        && region.base().is_aligned(PAGE_SIZE)
        && region.size().is_multiple_of(PAGE_SIZE)
}

/// The pages that lie wholly in `region`.
fn whole_pages_inside(region: HostRegion) -> Option<HostRegion> {
    let base = region.base().align_up(PAGE_SIZE)?;
    HostRegion::between(base, region.end().align_down(PAGE_SIZE)).filter(|pages| !pages.is_empty())
}

/// The pages of which `region` touches a byte.
fn pages_touched(region: HostRegion) -> HostRegion {
    let base = region.base().align_down(PAGE_SIZE);
    // The last page of the address space cannot be described by its end; it is no RAM.
    let last = HostPhysical::new(u64::MAX).align_down(PAGE_SIZE);
    let end = region.end().align_up(PAGE_SIZE).unwrap_or(last);
    HostRegion::between(base, end).unwrap_or(region)
}
