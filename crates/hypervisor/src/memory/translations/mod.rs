//! Cached translations: which tag (VMID) marks those of a vCPU, and when a hart must drop some before the vCPU runs.
//!
//! Each vCPU has a tag of its own where the harts have enough of them: with one tag for each VM, two vCPUs that take turns on
//! one hart would see each other's stale entries. Where there are too few tags, several vCPUs have the same tag, and
//! whatever is marked with it is dropped when another one of them comes to a hart. With no VMID bits at all
//! (VMIDLEN = 0 is allowed: privileged architecture, "Hypervisor Guest Address Translation and Protection Register") that
//! means at each change of the vCPU.
//!
//! This module alone decides about tags and purges. It is pure: what a hart has to do is told by [`Purge`], and carried
//! out by [`Fences`]. `model` explores all that harts, vCPUs and tables can do, and looks for a use of a stale entry.
//!
//! The argument, for a vCPU V that is about to run on a hart H. An entry on H with V's tag may be stale because
//! - another vCPU made it: then that vCPU had the tag on H later than V, and `Holders` knows ([`Purge::others`]);
//! - V changed its tables and fenced on another hart: then V ran last on that hart ([`Purge::moved`]);
//! - a sibling asked V for a fence, or V's life began anew: [`Cached::forget`] and requests lead to the same purge;
//! - the G-stage table changed: then the generation under which V last ran on H is an older one ([`Purge::older`]).

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use crate::hart::fence;
use scheduler::{HartId, MAX_HARTS, MAX_VCPUS, VcpuId};

/// Bits of the largest VMID that hgatp can hold (VMIDMAX on RV64).
pub const MOST_TAG_BITS: u32 = 14;

/// A VMID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u16);

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
    /// Tags that are used, 1 at least.
    count: u16,
}

impl Tags {
    /// The tags of harts with so many VMID bits (VMIDLEN).
    #[must_use]
    pub const fn with_bits(bits: u32) -> Self {
        let all = 1u32
            << if bits > MOST_TAG_BITS {
                MOST_TAG_BITS
            } else {
                bits
            };
        // One more than there can be vCPUs, since tag 0 is used only where it is the only one.
        let most = MAX_VCPUS as u32 + 1;
        Self {
            count: (if all < most { all } else { most }) as u16,
        }
    }

    /// The tag of a vCPU, on every hart. The `n`th vCPU of the system, from 0, has tag n + 1 where there are enough.
    #[must_use]
    pub const fn of(self, vcpu: VcpuId) -> Tag {
        match self.count {
            0 | 1 => Tag(0),
            count => Tag(1 + vcpu.get() % (count - 1)),
        }
    }

    /// Whether the first `vcpus` vCPUs have a tag each.
    #[must_use]
    pub const fn are_enough_for(self, vcpus: usize) -> bool {
        vcpus <= 1 || vcpus < self.count as usize
    }
}

/// For one hart: whose entries each tag may mark there. Only the hart itself uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holders([Option<VcpuId>; MAX_VCPUS + 1]);

impl Default for Holders {
    fn default() -> Self {
        Self([None; MAX_VCPUS + 1])
    }
}

impl Holders {
    /// Gives the tag to `vcpu`. True where another one's entries may be marked with it.
    fn take(&mut self, tag: Tag, vcpu: VcpuId) -> bool {
        // A tag that had no place here would be purged each time.
        let Some(place) = self.0.get_mut(usize::from(tag.number())) else {
            return true;
        };
        place.replace(vcpu) != Some(vcpu)
    }
}

/// For one vCPU: where its translations are cached. Only the hart that has the vCPU uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cached {
    last: Option<HartId>,
    /// For each hart: the generation of the G-stage table since which nothing older is cached there. 0: not yet.
    seen: [u64; MAX_HARTS],
}

impl Default for Cached {
    fn default() -> Self {
        Self {
            last: None,
            seen: [0; MAX_HARTS],
        }
    }
}

impl Cached {
    /// The hart where the vCPU ran last.
    #[must_use]
    pub const fn last_hart(&self) -> Option<HartId> {
        self.last
    }

    /// The vCPU comes to `hart`, whose hgatp has `tag` from now on; the G-stage table has `generation`, from 1. Nothing of
    /// what the answer says must be left out before the vCPU enters its guest.
    #[must_use]
    pub fn arrive(
        &mut self,
        vcpu: VcpuId,
        hart: HartId,
        holders: &mut Holders,
        tag: Tag,
        generation: u64,
    ) -> Purge {
        let others = holders.take(tag, vcpu);
        let moved = self.last.replace(hart) != Some(hart);
        Purge {
            others,
            moved,
            older: self.renew(hart, generation).older,
        }
    }

    /// The G-stage table has `generation` now; the vCPU is on `hart`, and about to enter its guest.
    #[must_use]
    pub const fn renew(&mut self, hart: HartId, generation: u64) -> Purge {
        let seen = &mut self.seen[hart.index()];
        let older = *seen != generation;
        *seen = generation;
        Purge {
            others: false,
            moved: false,
            older,
        }
    }
}

/// What a hart must drop before a vCPU enters its guest, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// Another vCPU's entries may have the tag.
    pub others: bool,
    /// The vCPU may have fenced on another hart.
    pub moved: bool,
    /// The G-stage table may have changed.
    pub older: bool,
}

/// A hart's fences.
pub trait Fences {
    /// Drops the VS-stage entries whose tag hgatp has now (HFENCE.VVMA).
    fn guest_virtual(&mut self);
    /// Drops the G-stage entries with this tag (HFENCE.GVMA). Entries that hold a whole translation of both stages may stay,
    /// so [`guest_virtual`](Self::guest_virtual) follows.
    fn guest_physical(&mut self, tag: Tag);
    /// Makes stores to code visible to this hart's fetches (FENCE.I).
    fn instructions(&mut self);
}

/// The fences of the hart that runs this.
#[derive(Debug)]
pub struct HartFences;

impl Fences for HartFences {
    fn guest_virtual(&mut self) {
        fence::guest_virtual_all();
    }

    fn guest_physical(&mut self, tag: Tag) {
        fence::guest_physical_of(tag.number().into());
    }

    fn instructions(&mut self) {
        fence::instructions();
    }
}

impl Purge {
    /// Drops what must be dropped. hgatp has `tag`.
    pub fn carry_out(self, tag: Tag, fences: &mut impl Fences) {
        if self.others || self.older {
            fences.guest_physical(tag);
        }
        if self.others || self.older || self.moved {
            fences.guest_virtual();
        }
        if self.moved {
            fences.instructions();
        }
    }
}
