//! VMIDs of one hart: the tag that marks the entries of each vCPU there, and how a hart drops what a tag marks.
//!
//! By fences ([`Purging::Fence`]) each vCPU has the same tag on every hart, and what it marks is dropped. By renaming
//! ([`Purging::NewVmid`]) the vCPU gets a tag that marks nothing, and the old entries stay until others take their places.
//! Each hart then gives its tags out one after the other. When they are used up a new round begins: everything is
//! dropped under every tag, and no vCPU has one. That costs as many fences as there are tags in a round, because no
//! fence reaches the VS-stage entries of more than the VMID that is in hgatp (privileged architecture, "Hypervisor
//! Memory-Management Fence Instructions": HFENCE.VVMA). So renaming saves no fences. It saves what a fence drops beside
//! what it names, on harts whose fences ignore the VMID: there it drops the entries of all vCPUs once in a round.

use alloc::boxed::Box;

use super::fences::Fences;
use super::tags::{Tag, Tags};
use abi::system::Purging;
use scheduler::groups::NumberSet;
use scheduler::{MAX_NUMBERS, VcpuNumber};

/// Tags that a hart gives out in a round at most. A round ends with a fence for each, some 20 cycles on the harts that we know:
/// this bounds by how much one dispatch is later than others.
pub const MAX_TAGS_PER_ROUND: u16 = 1024;

/// Tags of the vCPUs on one hart. Used by the hart itself alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VmidTable {
    /// The vCPUs whose tags mark nothing that others made.
    held: NumberSet,
    tags: [Tag; MAX_NUMBERS],
    order: Order,
}

/// Order in which tags are given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Order {
    /// Each vCPU has one for ever. For each tag, 1 + the vCPU that used it last, or 0.
    Fixed(Box<[u16; MAX_NUMBERS + 1]>),
    /// One after the other: the next one, and the end.
    Round { next: u16, end: u16 },
}

impl VmidTable {
    /// Before any vCPU has come to the hart, whose tags these are.
    #[must_use]
    pub fn new(purging: Purging, tags: Tags) -> Self {
        let (order, tags) = match purging {
            Purging::Fence => {
                let own = core::array::from_fn(|index| {
                    VcpuNumber::new(index as u16).map_or(Tag(0), |vcpu| tags.of(vcpu))
                });
                (Order::Fixed(Box::new([0; MAX_NUMBERS + 1])), own)
            }
            Purging::NewVmid => {
                let end = tags.all.min(MAX_TAGS_PER_ROUND);
                // Former entries of the hart are unknown, so the first arrival begins a round.
                (Order::Round { next: end, end }, [Tag(0); MAX_NUMBERS])
            }
        };
        Self {
            held: NumberSet::EMPTY,
            tags,
            order,
        }
    }

    /// The vCPU's tag here, to be in hgatp when it arrives; 0 where it has none yet.
    #[must_use]
    pub fn tag(&self, vcpu: VcpuNumber) -> Tag {
        self.tags.get(vcpu.index()).copied().unwrap_or(Tag(0))
    }

    /// Tests whether no other vCPU has used the vCPU's tag since its own last use.
    #[must_use]
    pub const fn has(&self, vcpu: VcpuNumber) -> bool {
        self.held.contains(vcpu)
    }

    /// The vCPU comes to the hart. Returns true if others' entries may be marked with its tag.
    pub(super) fn take(&mut self, vcpu: VcpuNumber) -> bool {
        if self.has(vcpu) {
            return false;
        }
        let tag = self.tag(vcpu);
        if let Order::Fixed(last) = &mut self.order
            && let Some(last) = last.get_mut(usize::from(tag.number()))
        {
            let before = core::mem::replace(last, vcpu.get() + 1);
            if let Some(before) = before.checked_sub(1).and_then(VcpuNumber::new) {
                self.held.remove(before);
            }
            self.held.insert(vcpu);
        }
        true
    }

    /// Gives the vCPU a tag that marks nothing, and puts it into hgatp. `None` where that is not how this hart purges. vsatp is 0.
    pub(super) fn rename(&mut self, vcpu: VcpuNumber, fences: &mut impl Fences) -> Option<Tag> {
        let Order::Round { next, end } = &mut self.order else {
            return None;
        };
        if *next >= *end {
            // Tag 0 is used only where it is the only one.
            let first = u16::from(*end > 1);
            *next = first;
            self.held = NumberSet::EMPTY;
            self.tags = [Tag(0); MAX_NUMBERS];
            // First what both stages make together, and then what is known of the VS-stage alone.
            fences.guest_physical_all();
            for number in first..*end {
                fences.use_tag(Tag(number));
                fences.guest_virtual();
            }
        }
        let tag = Tag(*next);
        *next += 1;
        if let Some(own) = self.tags.get_mut(vcpu.index()) {
            *own = tag;
            self.held.insert(vcpu);
        }
        fences.use_tag(tag);
        Some(tag)
    }
}

#[cfg(test)]
impl VmidTable {
    /// 1 + the vCPU that used the tag last, or 0, where each vCPU has one for ever.
    pub(super) fn last(&self, tag: Tag) -> u16 {
        match &self.order {
            Order::Fixed(last) => last[usize::from(tag.number())],
            Order::Round { .. } => unreachable!(),
        }
    }

    /// The vCPU has no tag from now on.
    pub(super) fn forget(&mut self, vcpu: VcpuNumber) {
        self.held.remove(vcpu);
    }

    /// Sets the tag's last user.
    pub(super) fn set_last(&mut self, tag: Tag, vcpu: u16) {
        let vcpu = vcpu.checked_sub(1).and_then(VcpuNumber::new);
        if let Some(vcpu) = vcpu.filter(|vcpu| self.tag(*vcpu) == tag) {
            let _ = self.take(vcpu);
        }
    }
}
