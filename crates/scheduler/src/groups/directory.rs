//! Where each vCPU and each hart is.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::base::id::{HartId, MAX_HARTS, MAX_NUMBERS, VcpuId, VcpuNumber};

/// The largest number of groups: a hart each.
pub const MAX_GROUPS: usize = MAX_HARTS;

/// A group, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u8);

impl GroupId {
    /// The first group, which there always is.
    pub const FIRST: Self = Self(0);

    /// The group with this index, or `None` where no table has a place for it.
    #[must_use]
    pub const fn new(index: usize) -> Option<Self> {
        if index < MAX_GROUPS {
            // A small number: nothing is cut off.
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// The place in a table: always below [`MAX_GROUPS`].
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize % MAX_GROUPS
    }

    /// The group's bit.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.index()
    }

    /// The group of the lowest bit that is one.
    pub(super) const fn of_bits(bits: u64) -> Option<Self> {
        match bits {
            0 => None,
            bits => Self::new(bits.trailing_zeros() as usize),
        }
    }
}

/// A vCPU's group, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The group.
    pub group: GroupId,
    /// The place in the group's tables.
    pub vcpu: VcpuId,
}

/// The groups of all harts, which stay, and the places of all vCPUs, which change.
///
/// Who wants to do something with a vCPU looks here, is_hungry the lock of the group that is named, and looks again: a place is changed
/// only by one that has the locks of both groups, so that what is read under the lock of the group that it names, holds.
#[derive(Debug)]
pub struct Directory {
    harts: [GroupId; MAX_HARTS],
    places: [AtomicU32; MAX_NUMBERS],
}

/// No place.
const NOWHERE: u32 = u32::MAX;

impl Directory {
    /// A directory without vCPUs, of harts that are all in the first group.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            harts: [GroupId::FIRST; MAX_HARTS],
            places: [const { AtomicU32::new(NOWHERE) }; MAX_NUMBERS],
        }
    }

    /// The same directory, in which `hart` is in this group.
    pub fn assign(&mut self, hart: HartId, group: GroupId) {
        self.harts[hart.index()] = group;
    }

    /// The group of a hart.
    #[must_use]
    #[inline]
    pub fn group_of(&self, hart: HartId) -> GroupId {
        self.harts[hart.index()]
    }

    /// Where a vCPU is.
    #[must_use]
    #[inline]
    pub fn place(&self, vcpu: VcpuNumber) -> Option<Place> {
        // Locks order everything else.
        let word = self.places[vcpu.index()].load(Ordering::Relaxed);
        if word == NOWHERE {
            return None;
        }
        Some(Place {
            group: GroupId::new((word >> 16) as usize)?,
            vcpu: VcpuId::new(word as u16)?,
        })
    }

    pub(super) fn set(&self, vcpu: VcpuNumber, place: Place) {
        let word = u32::from(place.group.0) << 16 | u32::from(place.vcpu.get());
        self.places[vcpu.index()].store(word, Ordering::Relaxed);
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}
