//! Names of harts, virtual machines and virtual processors, and sets of them.

use core::fmt;

/// The largest number of harts that one scheduler serves.
pub const MAX_HARTS: usize = if SMALL { 4 } else { 64 };
/// The largest number of vCPUs that one scheduler serves, over all virtual machines.
pub const MAX_VCPUS: usize = if SMALL { 8 } else { 64 };
/// The largest number of virtual machines.
pub const MAX_VMS: usize = if SMALL { 4 } else { 64 };
/// The largest number of vCPUs of a computer whose harts are in groups.
pub const MAX_NUMBERS: usize = 512;

/// The model checker keeps a great many tables, so it has small ones.
const SMALL: bool = cfg!(test);

macro_rules! identity {
    ($(#[$documentation:meta])* $name:ident, $limit:expr, $prefix:literal) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u16);

        impl $name {
            /// The name with this index, or `None` where no table has a place for it.
            #[must_use]
            pub const fn new(index: u16) -> Option<Self> {
                if (index as usize) < $limit { Some(Self(index)) } else { None }
            }

            /// The place in a table: always below the limit of its kind.
            #[must_use]
            #[inline]
            pub const fn index(self) -> usize {
                // The remainder changes nothing. It shows the compiler that no access to such a table is out of bounds.
                self.0 as usize % $limit
            }

            /// The number itself.
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
    /// A virtual machine.
    VmId, MAX_VMS, "vm"
);
identity!(
    /// A vCPU, by its place in the tables of the scheduler that serves it: unique over all virtual machines there.
    VcpuId, MAX_VCPUS, "vcpu"
);
identity!(
    /// A vCPU, by a number that it keeps whichever group of harts serves it ([`crate::groups`]).
    VcpuNumber, MAX_NUMBERS, "vcpu"
);

macro_rules! set {
    ($(#[$documentation:meta])* $name:ident of $member:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// The set without members.
            pub const EMPTY: Self = Self(0);

            /// The set whose members are the indices of the bits that are one.
            #[must_use]
            pub const fn from_bits(bits: u64) -> Self {
                Self(bits)
            }

            /// One bit a member, by index.
            #[must_use]
            pub const fn bits(self) -> u64 {
                self.0
            }

            /// The set with one member.
            #[must_use]
            pub const fn only(member: $member) -> Self {
                Self(1 << member.get())
            }

            /// Whether `member` belongs to the set.
            #[must_use]
            pub const fn contains(self, member: $member) -> bool {
                self.0 & Self::only(member).0 != 0
            }

            /// Adds a member; nothing happens if it is there already.
            pub const fn insert(&mut self, member: $member) {
                self.0 |= Self::only(member).0;
            }

            /// Takes a member out; nothing happens if it is not there.
            pub const fn remove(&mut self, member: $member) {
                self.0 &= !Self::only(member).0;
            }

            /// The members of either set.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The members of both sets.
            #[must_use]
            pub const fn intersection(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }

            /// The members of this set that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Whether there is no member.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The number of members.
            #[must_use]
            pub const fn count(self) -> u32 {
                self.0.count_ones()
            }

            /// The member with the lowest index.
            #[must_use]
            #[inline]
            pub const fn first(self) -> Option<$member> {
                match self.0 {
                    0 => None,
                    // A small number of bits: nothing is cut off.
                    bits => $member::new(bits.trailing_zeros() as u16),
                }
            }

            /// The members in the order of their indices.
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
    /// A set of virtual machines.
    VmSet of VmId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stop_at_the_size_of_their_tables() {
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
