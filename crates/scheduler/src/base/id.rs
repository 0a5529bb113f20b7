//! Identifiers of harts, VMs and vCPUs, and sets of them.

use core::fmt;

/// Harts of one scheduler at most.
pub const MAX_HARTS: usize = if SMALL { 4 } else { 64 };
/// vCPUs of one scheduler at most, over all VMs.
pub const MAX_VCPUS: usize = if SMALL { 8 } else { 64 };
/// VMs at most.
pub const MAX_VMS: usize = if SMALL { 4 } else { 64 };
/// vCPUs of a computer whose harts are in groups at most.
pub const MAX_NUMBERS: usize = 512;

/// Small tables for the model checker, which keeps many of them.
const SMALL: bool = cfg!(test);

macro_rules! identity {
    ($(#[$documentation:meta])* $name:ident, $limit:expr, $prefix:literal) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u16);

        impl $name {
            /// Identifier with this index, or `None` if tables have no place for it.
            #[must_use]
            pub const fn new(index: u16) -> Option<Self> {
                if (index as usize) < $limit { Some(Self(index)) } else { None }
            }

            /// Place in a table: always below the limit.
            #[must_use]
            #[inline]
            pub const fn index(self) -> usize {
                // The remainder changes nothing. It shows the compiler that no access to such a table is out of bounds.
                self.0 as usize % $limit
            }

            /// Number.
            #[must_use]
            pub const fn get(self) -> u16 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, formatter)
            }
        }
    };
}

identity!(
    /// A hart, by the index that the hypervisor gives it (not the `mhartid`).
    HartId, MAX_HARTS, "hart"
);
identity!(
    /// A VM.
    VmId, MAX_VMS, "vm"
);
identity!(
    /// A vCPU, by its place in the tables of its scheduler: unique over all VMs there.
    VcpuId, MAX_VCPUS, "vcpu"
);
identity!(
    /// A vCPU, by its number, which it keeps in every group of harts ([`crate::groups`]).
    VcpuNumber, MAX_NUMBERS, "vcpu"
);

macro_rules! set {
    ($(#[$documentation:meta])* $name:ident of $member:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Empty set.
            pub const EMPTY: Self = Self(0);

            /// Set whose members are the indices of the one bits.
            #[must_use]
            pub const fn from_bits(bits: u64) -> Self {
                Self(bits)
            }

            /// Bit mask of the members, by index.
            #[must_use]
            pub const fn bits(self) -> u64 {
                self.0
            }

            /// Set with one member.
            #[must_use]
            pub const fn only(member: $member) -> Self {
                Self(1 << member.get())
            }

            /// Returns true if `member` belongs to the set.
            #[must_use]
            pub const fn contains(self, member: $member) -> bool {
                self.0 & Self::only(member).0 != 0
            }

            /// Adds a member, if it is not there yet.
            pub const fn insert(&mut self, member: $member) {
                self.0 |= Self::only(member).0;
            }

            /// Removes a member, if it is there.
            pub const fn remove(&mut self, member: $member) {
                self.0 &= !Self::only(member).0;
            }

            /// Members of either set.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Members of both sets.
            #[must_use]
            pub const fn intersection(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }

            /// Members of this set that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Returns true if there is no member.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Number of members.
            #[must_use]
            pub const fn count(self) -> u32 {
                self.0.count_ones()
            }

            /// Member with the lowest index.
            #[must_use]
            #[inline]
            pub const fn first(self) -> Option<$member> {
                match self.0 {
                    0 => None,
                    // A small number of bits: nothing is cut off.
                    bits => $member::new(bits.trailing_zeros() as u16),
                }
            }

            /// Members in the order of their indices.
            pub fn iter(self) -> impl Iterator<Item = $member> {
                let mut rest = self;
                core::iter::from_fn(move || {
                    let member = rest.first()?;
                    rest.remove(member);
                    Some(member)
                })
            }
        }

        impl FromIterator<$member> for $name {
            fn from_iter<I: IntoIterator<Item = $member>>(members: I) -> Self {
                let mut set = Self::EMPTY;
                for member in members {
                    set.insert(member);
                }
                set
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.debug_set().entries(self.iter()).finish()
            }
        }
    };
}

set!(
    /// A set of harts.
    HartSet of HartId
);
set!(
    /// A set of vCPUs.
    VcpuSet of VcpuId
);
set!(
    /// A set of VMs.
    VmSet of VmId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_stop_at_their_tables_size() {
        let limit = u16::try_from(MAX_HARTS).unwrap();
        assert!(HartId::new(limit - 1).is_some());
        assert!(HartId::new(limit).is_none());
        assert!(VmId::new(u16::MAX).is_none());
    }

    #[test]
    fn a_set_returns_its_members_in_order() {
        let members = [7, 0, 3].map(|index| VcpuId::new(index).unwrap());
        let set: VcpuSet = members.into_iter().collect();
        assert!(set.iter().map(VcpuId::get).eq([0, 3, 7]));
        assert_eq!(set.count(), 3);
        assert_eq!(VcpuSet::EMPTY.first(), None);
    }
}
