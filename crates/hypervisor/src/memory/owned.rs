//! Memory of the host that was given away, as a type.

use core::fmt;

use crate::memory::address::{HostPhysical, HostRegion};

/// Bytes of the host's memory that a VM owns, or the hypervisor for a device of a VM.
///
/// An address is an allegation: a [`HostPhysical`] proves nothing. Holding one of these proves that all of its bytes are RAM that
/// the [frame allocator](crate::memory::frames) has given away, and in which no Rust object lies or ever will. So code without
/// `unsafe` reads and writes it, and can break no object of the hypervisor.
///
/// Two things are not proved. A guest or a device may change the bytes at any time: a value that is needed twice is read once. And
/// a page of a guest may get another owner after it was given back: [`reclaim`](crate::memory::reclaim) waits for each hart and each
/// operation of a device that may hold one of these.
///
/// An address does not become memory without `unsafe`:
///
/// ```compile_fail,E0308
/// use hypervisor::memory::address::HostPhysical;
/// use hypervisor::memory::guest::HostMemory;
/// use hypervisor::memory::physical::Physical;
///
/// Physical::default().set_byte(HostPhysical::new(0x1000), 1);
/// ```
///
/// ```compile_fail,E0133
/// use hypervisor::memory::address::{HostPhysical, HostRegion};
/// use hypervisor::memory::guest::HostMemory;
/// use hypervisor::memory::owned::OwnedRegion;
/// use hypervisor::memory::physical::Physical;
///
/// let region = HostRegion::new(HostPhysical::new(0x1000), 8).unwrap();
/// Physical::default().set_byte(OwnedRegion::new(region), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnedRegion {
    base: HostPhysical,
    size: u64,
}

impl OwnedRegion {
    /// The bytes of `region`.
    ///
    /// # Safety
    /// All of it is RAM that its owner may read and write, and no Rust object lies there as long as the hypervisor runs.
    #[must_use]
    pub unsafe fn new(region: HostRegion) -> Self {
        Self {
            base: region.base(),
            size: region.size(),
        }
    }

    /// The first byte's address.
    #[inline]
    #[must_use]
    pub const fn base(self) -> HostPhysical {
        self.base
    }

    /// Number of bytes.
    #[inline]
    #[must_use]
    pub const fn size(self) -> u64 {
        self.size
    }

    /// The addresses of the bytes.
    #[must_use]
    pub fn region(self) -> HostRegion {
        // `new` had a region, and parts of it end no later.
        HostRegion::new(self.base, self.size).unwrap_or_default()
    }

    /// The bytes behind the first `bytes`; none where there are no more.
    #[inline]
    #[must_use]
    pub const fn skip(self, bytes: u64) -> Self {
        let bytes = if bytes < self.size { bytes } else { self.size };
        Self {
            // The region ends within 64 bits, so neither overflows.
            base: HostPhysical::new(self.base.raw().wrapping_add(bytes)),
            size: self.size.wrapping_sub(bytes),
        }
    }

    /// The first `bytes`; all where there are fewer.
    #[inline]
    #[must_use]
    pub const fn take(self, bytes: u64) -> Self {
        let size = if bytes < self.size { bytes } else { self.size };
        Self { size, ..self }
    }

    /// The `size` bytes from `offset` on; `None` where not all of them belong to the region.
    #[inline]
    #[must_use]
    pub const fn part(self, offset: u64, size: u64) -> Option<Self> {
        let rest = self.skip(offset);
        match offset <= self.size && size <= rest.size {
            true => Some(rest.take(size)),
            false => None,
        }
    }

    /// Tests whether the memory begins with an aligned value of `bytes`, a power of two.
    #[inline]
    #[must_use]
    pub const fn fits(self, bytes: u64) -> bool {
        bytes <= self.size && self.base.is_aligned(bytes)
    }

    /// Memory of a model.
    #[cfg(test)]
    #[must_use]
    pub fn for_test(base: u64, size: u64) -> Self {
        let region = HostRegion::new(HostPhysical::new(base), size).expect("a region");
        // SAFETY: tests reach it through a model of the host's memory, which checks each address.
        unsafe { Self::new(region) }
    }
}

impl fmt::Debug for OwnedRegion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.region(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any cut: no part reaches beyond the whole.
        #[test]
        fn parts_stay_inside(base in 0..1u64 << 40, size in 0..1u64 << 20, steps in prop::collection::vec((0..3u8, any::<u64>(), any::<u64>()), 0..8)) {
            let whole = OwnedRegion::for_test(base, size);
            let mut part = whole;
            for (step, offset, length) in steps {
                let (offset, length) = (offset >> 40, length >> 40);
                part = match step {
                    0 => part.skip(offset),
                    1 => part.take(length),
                    _ => part.part(offset, length).unwrap_or(part),
                };
                prop_assert!(whole.region().covers(part.region()));
            }
        }
    }

    #[test]
    fn extremes_of_offsets_are_outside() {
        let region = OwnedRegion::for_test(0x1000, 16);
        assert_eq!(region.skip(u64::MAX).size(), 0);
        assert_eq!(region.take(u64::MAX), region);
        assert_eq!(region.part(u64::MAX, 1), None);
        assert_eq!(region.part(8, u64::MAX), None);
        assert_eq!(region.part(16, 0).map(OwnedRegion::size), Some(0));
        assert!(region.fits(16) && region.skip(8).fits(8) && !region.skip(4).fits(8));
    }
}
