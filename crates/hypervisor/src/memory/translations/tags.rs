//! Tags (VMIDs), and how many there are.

use scheduler::{MAX_NUMBERS, VcpuNumber};

/// Bits of the largest VMID that hgatp can hold (VMIDMAX on RV64).
pub const MAX_TAG_BITS: u32 = 14;

/// A VMID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub(super) u16);

impl Tag {
    /// The number, as in hgatp.VMID; below 2 to the power of the number of VMID bits.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// The tags that all harts of the board have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    /// Tags that are used where each vCPU has one for ever, 1 at least.
    pub(super) count: u16,
    /// Tags that there are.
    pub(super) all: u16,
}

impl Tags {
    /// The tags of harts with so many VMID bits (VMIDLEN).
    #[must_use]
    pub const fn with_bits(bits: u32) -> Self {
        let all = 1u32
            << if bits > MAX_TAG_BITS {
                MAX_TAG_BITS
            } else {
                bits
            };
        // One more than there can be vCPUs, since tag 0 is used only where it is the only one.
        let most = MAX_NUMBERS as u32 + 1;
        Self {
            count: (if all < most { all } else { most }) as u16,
            all: all as u16,
        }
    }

    /// The tag of a vCPU that has one for ever, on every hart. The `n`th vCPU of the system, from 0, has tag n + 1 where there are enough.
    #[must_use]
    pub const fn of(self, vcpu: VcpuNumber) -> Tag {
        match self.count {
            0 | 1 => Tag(0),
            count => Tag(1 + vcpu.get() % (count - 1)),
        }
    }

    /// Tests whether the first `vcpus` vCPUs have a tag each.
    #[must_use]
    pub const fn are_enough_for(self, vcpus: usize) -> bool {
        vcpus <= 1 || vcpus < self.count as usize
    }
}
