//! Ids of devices at IOMMUs.

use core::ops::RangeInclusive;

use crate::Range;

/// A device whose DMA goes through an IOMMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// Registers of the IOMMU.
    pub iommu: Range,
    /// Ids that the device has there.
    pub ids: RangeInclusive<u32>,
}

/// Tests whether an IOMMU takes one of these for one of the others.
pub(super) fn shares_ids(own: &[Behind], others: &[&Behind]) -> bool {
    for own in own {
        for other in others {
            let apart = own.ids.end() < other.ids.start() || other.ids.end() < own.ids.start();
            if own.iommu.start == other.iommu.start && !apart {
                return true;
            }
        }
    }
    false
}
