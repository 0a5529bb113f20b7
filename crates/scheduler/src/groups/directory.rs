//! Directory of vCPUs and harts: their groups and places.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::base::id::{HartId, MAX_HARTS, MAX_NUMBERS, VcpuId, VcpuNumber};

/// Groups at most: a hart each.
pub const MAX_GROUPS: usize = MAX_HARTS;

/// A group, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u8);

impl GroupId {
    /// First group, which always exists.
    pub const FIRST: Self = Self(0);

    /// Group with this index, or `None` if tables have no place for it.
    #[must_use]
    pub const fn new(index: usize) -> Option<Self> {
        if index < MAX_GROUPS {
            // A small number: nothing is cut off.
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Place in a table: always below [`MAX_GROUPS`].
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize % MAX_GROUPS
    }

    /// Bit of the group.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.index()
    }

    /// Group of the lowest one bit.
    pub(super) const fn of_bits(bits: u64) -> Option<Self> {
        match bits {
            0 => None,
            bits => Self::new(bits.trailing_zeros() as usize),
        }
    }
}

/// Group of a vCPU, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Group.
    pub group: GroupId,
    /// Place in the group's tables.
    pub vcpu: VcpuId,
}

/// Groups of all harts, which stay, and places of all vCPUs, which change.
///
/// A caller reads the place of a vCPU, takes the lock of that group, and reads the place again. Only a holder of both groups' locks changes a place,
/// so that a place read under the lock of the group that it names is valid.
#[derive(Debug)]
pub struct Directory {
    harts: [GroupId; MAX_HARTS],
    places: [AtomicU32; MAX_NUMBERS],
}

/// No place.
const NOWHERE: u32 = u32::MAX;

impl Directory {
    /// Directory without vCPUs, of harts that are all in the first group.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            harts: [GroupId::FIRST; MAX_HARTS],
            places: [const { AtomicU32::new(NOWHERE) }; MAX_NUMBERS],
        }
    }

    /// Puts `hart` into this group.
    pub fn assign(&mut self, hart: HartId, group: GroupId) {
        self.harts[hart.index()] = group;
    }

    /// Group of a hart.
    #[must_use]
    #[inline]
    pub fn group_of(&self, hart: HartId) -> GroupId {
        self.harts[hart.index()]
    }

    /// Place of a vCPU.
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
