//! A run of bytes of a guest's memory, which may lie in several pieces of the host's.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use super::{GuestMemory, HostMemory};
use crate::memory::address::GuestRegion;
use crate::memory::owned::OwnedRegion;

/// Bytes of a guest's memory, checked to be its own.
#[derive(Clone, Copy, Debug)]
pub struct GuestBytes<'a> {
    pub(super) memory: &'a GuestMemory,
    pub(super) region: GuestRegion,
}

impl<'a> GuestBytes<'a> {
    #[inline]
    fn at(self, offset: u64, size: u64) -> Option<OwnedRegion> {
        let end = offset.checked_add(size)?;
        let address = self.region.base().checked_add(offset)?;
        (end <= self.region.size())
            .then(|| self.memory.in_one(address, size))
            .flatten()
    }

    /// The bytes, one by one; the guest may change them meanwhile.
    pub fn iter<H: HostMemory>(self, host: &'a H) -> impl Iterator<Item = u8> {
        let ranges = self.memory.ranges(self.region).into_iter().flatten();
        ranges.flat_map(move |range| {
            (0..range.size()).map(move |offset| host.byte(range.skip(offset)))
        })
    }

    /// Writes one byte; an offset outside is ignored.
    pub fn write(self, offset: u64, byte: u8, host: &impl HostMemory) {
        if let Some(at) = self.at(offset, 1) {
            host.set_byte(at, byte);
        }
    }

    /// Writes a 32-bit word in one access, little-endian; one that is not aligned or does not lie inside is ignored.
    pub fn write_word(self, offset: u64, word: u32, host: &impl HostMemory) {
        if let Some(at) = self.at(offset, 4).filter(|at| at.fits(4)) {
            host.set_word(at, word.to_le());
        }
    }

    /// Zeroes the bytes. No vCPU of the guest runs.
    pub fn zero(self, host: &impl HostMemory) {
        for range in self.memory.ranges(self.region).into_iter().flatten() {
            host.zero(range);
        }
    }

    /// Copies `data` to the start; what does not fit is left out. No vCPU of the guest runs.
    pub fn copy_from(self, data: &[u8], host: &impl HostMemory) {
        let mut left = data;
        for range in self.memory.ranges(self.region).into_iter().flatten() {
            let length = usize::try_from(range.size()).unwrap_or(usize::MAX);
            let (now, later) = left.split_at(length.min(left.len()));
            host.copy(range, now);
            left = later;
        }
    }
}
