//! Physical addresses: guest-physical and host-physical.
//!
//! The two never mix. A guest-physical address means something only together with the VM whose
//! G-stage table translates it; a host-physical address is what the bus sees.

use core::fmt;

/// Bytes in a page, the smallest unit that the G-stage maps.
pub const PAGE_SIZE: u64 = 4096;

/// An address that [`Region`] accepts: a newtype over 64 bits.
pub trait PhysicalAddress: Copy + Ord + fmt::Debug {
    /// The address of this kind with this value.
    fn from_raw(raw: u64) -> Self;
    /// The address as a number.
    fn raw(self) -> u64;
}

macro_rules! physical_address {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// The address with this value.
            pub const fn new(raw: u64) -> Self {
                Self(raw)
            }

            /// The address as a number.
            pub const fn raw(self) -> u64 {
                self.0
            }

            /// Adds `bytes`; `None` on overflow.
            pub const fn checked_add(self, bytes: u64) -> Option<Self> {
                match self.0.checked_add(bytes) {
                    Some(raw) => Some(Self(raw)),
                    None => None,
                }
            }

            /// Tests whether the address is a multiple of `alignment`, which must be a power of two.
            pub const fn is_aligned(self, alignment: u64) -> bool {
                self.0 & alignment.wrapping_sub(1) == 0
            }

            /// The next multiple of `alignment` (a power of two) at or above this address; `None`
            /// where that leaves 64 bits.
            pub const fn align_up(self, alignment: u64) -> Option<Self> {
                let mask = alignment.wrapping_sub(1);
                match self.0.checked_add(mask) {
                    Some(raw) => Some(Self(raw & !mask)),
                    None => None,
                }
            }

            /// The last multiple of `alignment` (a power of two) at or below this address.
            pub const fn align_down(self, alignment: u64) -> Self {
                Self(self.0 & !alignment.wrapping_sub(1))
            }
        }

        impl PhysicalAddress for $name {
            fn from_raw(raw: u64) -> Self {
                Self(raw)
            }

            fn raw(self) -> u64 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:#x}", self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, formatter)
            }
        }
    };
}

physical_address! {
    /// A guest-physical address: what the guest's own page tables hold, the input of the G-stage.
    GuestPhysical
}

physical_address! {
    /// A host-physical (supervisor-physical) address: the output of the G-stage.
    HostPhysical
}

/// A run of bytes of one address space.
///
/// Holding one proves that its end can be computed: `base + size` does not leave 64 bits. It says
/// nothing about what lies there.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Region<A> {
    base: A,
    size: u64,
}

/// A run of guest-physical bytes.
pub type GuestRegion = Region<GuestPhysical>;
/// A run of host-physical bytes.
pub type HostRegion = Region<HostPhysical>;

impl<A: PhysicalAddress> Region<A> {
    /// The `size` bytes from `base`; `None` where the end leaves 64 bits.
    pub fn new(base: A, size: u64) -> Option<Self> {
        base.raw().checked_add(size).map(|_| Self { base, size })
    }

    /// The bytes from `start` up to and without `end`; `None` where `end` lies below `start`.
    pub fn between(start: A, end: A) -> Option<Self> {
        let size = end.raw().checked_sub(start.raw())?;
        Some(Self { base: start, size })
    }

    /// The first byte.
    pub fn base(self) -> A {
        self.base
    }

    /// Number of bytes.
    pub fn size(self) -> u64 {
        self.size
    }

    /// The first byte behind the region.
    pub fn end(self) -> A {
        // `new` and `between` saw to it that the sum stays within 64 bits.
        A::from_raw(self.base.raw().wrapping_add(self.size))
    }

    /// Tests whether the region is empty.
    pub fn is_empty(self) -> bool {
        self.size == 0
    }

    /// Tests whether the byte at `address` belongs to the region.
    pub fn contains(self, address: A) -> bool {
        self.base <= address && address < self.end()
    }

    /// Tests whether every byte of `other` belongs to this region. An empty region lies in every region
    /// that its base touches.
    pub fn covers(self, other: Self) -> bool {
        self.base <= other.base && other.end() <= self.end()
    }

    /// Tests whether the regions share a byte.
    pub fn overlaps(self, other: Self) -> bool {
        !self.is_empty() && !other.is_empty() && self.base < other.end() && other.base < self.end()
    }
}

impl<A: PhysicalAddress> fmt::Debug for Region<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl<A: PhysicalAddress> fmt::Display for Region<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}..{:#x}", self.base.raw(), self.end().raw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(base: u64, size: u64) -> HostRegion {
        HostRegion::new(HostPhysical::new(base), size).expect("a region within 64 bits")
    }

    #[test]
    fn region_beyond_address_space_is_refused() {
        assert_eq!(HostRegion::new(HostPhysical::new(u64::MAX), 1), None);
        assert_eq!(HostRegion::new(HostPhysical::new(1), u64::MAX), None);
        assert!(HostRegion::new(HostPhysical::new(u64::MAX), 0).is_some());
    }

    #[test]
    fn neighbours_do_not_overlap() {
        assert!(!region(0x1000, 0x1000).overlaps(region(0x2000, 0x1000)));
        assert!(region(0x1000, 0x1001).overlaps(region(0x2000, 0x1000)));
        assert!(!region(0x1000, 0).overlaps(region(0, 0x4000)));
    }

    proptest! {
        #[test]
        fn overlap_is_a_shared_byte(a in 0u64..40, b in 0u64..40, m in 0u64..20, n in 0u64..20) {
            let shared = (a..a + m).any(|byte| (b..b + n).contains(&byte));
            prop_assert_eq!(region(a, m).overlaps(region(b, n)), shared);
            prop_assert_eq!(region(b, n).overlaps(region(a, m)), shared);
        }

        #[test]
        fn alignment_brackets_an_address(raw in any::<u64>(), power in 0u32..40) {
            let alignment = 1u64 << power;
            let address = GuestPhysical::new(raw);
            let below = address.align_down(alignment);
            prop_assert!(below.is_aligned(alignment) && below <= address);
            match address.align_up(alignment) {
                Some(above) => {
                    prop_assert!(above.is_aligned(alignment) && above >= address);
                    prop_assert!(above.raw() - below.raw() <= alignment);
                }
                None => prop_assert!(raw > u64::MAX - alignment + 1),
            }
        }
    }
}
