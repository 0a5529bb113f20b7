//! Weighted virtual time, as in EEVDF: time of a VM's vCPUs on harts, divided by the VM's share.

use crate::base::ticks::Ticks;

/// A point in virtual time. It wraps: two VMs that are not compared for days may seem any number of slices apart, and are clamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct VirtualTime(u64);

/// Virtual time per tick of a hart: inverse of the VM's share, 16 fractional bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InverseWeight(u32);

impl InverseWeight {
    /// Inverse of a share; shares of up to a thousand are met to some hundredths.
    pub(crate) const fn of(share: u32) -> Self {
        const ONE: u32 = 1 << 16;
        Self(ONE.div_ceil(if share == 0 { 1 } else { share }))
    }

    /// Virtual time of `ran` on a hart.
    pub(crate) const fn vruntime(self, ran: Ticks) -> u64 {
        ran.get().wrapping_mul(self.0 as u64)
    }
}

impl VirtualTime {
    pub(crate) const START: Self = Self(0);

    pub(crate) const fn after(self, more: u64) -> Self {
        Self(self.0.wrapping_add(more))
    }

    pub(crate) const fn before(self, less: u64) -> Self {
        Self(self.0.wrapping_sub(less))
    }

    /// Distance of `self` behind `other` on the time line; negative if `self` is earlier.
    pub(crate) const fn since(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0).cast_signed()
    }
}
