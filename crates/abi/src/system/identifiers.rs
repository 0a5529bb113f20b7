//! Numbers and names of VMs, harts and slots.

use super::{MAX_HARTS, MAX_NAME_LENGTH};
use arrayvec::ArrayString;
use core::fmt;

/// A name that no VM may have: the hypervisor's own lines on the console carry it.
pub const RESERVED_NAME: &str = "partita";

/// A VM by its number, which is its place in the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VmId(pub u8);

impl VmId {
    /// The place in the description.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A hart by its number as the board's device tree gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HartId(pub u32);

/// A virtio-mmio slot of the board, from 0 at the lowest address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u8);

macro_rules! display_number {
    ($($kind:ident)*) => {
        $(impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        })*
    };
}
display_number!(VmId HartId Slot);

/// A VM's name: a letter, then letters, digits, `-` and `_`, in ASCII; never [`RESERVED_NAME`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VmName(ArrayString<MAX_NAME_LENGTH>);

impl VmName {
    /// Checks a name; `None` if it is not one.
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = name.bytes();
        let first = bytes.next()?.is_ascii_alphabetic();
        let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if !first || !rest || name == RESERVED_NAME {
            return None;
        }
        Some(Self(ArrayString::from(name).ok()?))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A set of harts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HartSet(u64);

impl HartSet {
    /// The set of no harts.
    pub const EMPTY: Self = Self(0);

    /// Adds a hart. False, and nothing changes, if it is there already or its number is not below [`MAX_HARTS`].
    pub fn insert(&mut self, hart: HartId) -> bool {
        let bit = 1u64.checked_shl(hart.0).unwrap_or(0);
        let new = bit != 0 && self.0 & bit == 0;
        self.0 |= bit;
        new
    }

    /// Returns true if the hart is in the set.
    pub fn contains(self, hart: HartId) -> bool {
        1u64.checked_shl(hart.0)
            .is_some_and(|bit| self.0 & bit != 0)
    }

    /// Number of harts in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The harts in both sets.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The harts in either set.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The harts, lowest number first.
    pub fn iter(self) -> impl Iterator<Item = HartId> {
        (0..MAX_HARTS)
            .map(HartId)
            .filter(move |hart| self.contains(*hart))
    }

    /// The set as a mask: bit N stands for hart N.
    pub fn mask(self) -> u64 {
        self.0
    }
}
