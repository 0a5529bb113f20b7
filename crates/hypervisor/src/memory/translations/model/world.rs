//! State of two harts and three vCPUs, and its errors.

use super::super::vmid_table::VmidTable;
use super::super::{Cached, Tags};
use super::fences::Model;
use abi::system::Purging;
use scheduler::{HartId, VcpuNumber};

pub(super) const HARTS: usize = 2;
pub(super) const VCPUS: usize = 3;
/// The VM of each vCPU.
pub(super) const VM: [usize; VCPUS] = [0, 0, 1];
/// The table of the first VM changes at most so often; the other one's does not.
pub(super) const CHANGES: u64 = 1;

/// A bit of `OnHart::entries` for each vCPU, staleness and generation.
pub(super) fn bit(vcpu: usize, stale: bool, generation: u64) -> u16 {
    1 << (vcpu * 4 + usize::from(stale) * 2 + (generation - 1) as usize)
}

/// All entries that `vcpu` made.
pub(super) fn made_by(vcpu: usize) -> u16 {
    0xf << (vcpu * 4)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OnHart {
    pub(super) entries: u16,
    pub(super) vmids: VmidTable,
    pub(super) vcpu: Option<usize>,
    pub(super) in_guest: bool,
    /// The generation under which the guest runs.
    pub(super) declared: u64,
    /// State that the hart keeps of fences and, where it tests that itself, purges by (docs/reference/extensions.md): a bit for each hart.
    pub(super) mask: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OfVcpu {
    pub(super) cached: Cached,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) harts: [OnHart; HARTS],
    pub(super) vcpus: [OfVcpu; VCPUS],
    pub(super) generations: [u64; 2],
}

pub(super) fn id(vcpu: usize) -> VcpuNumber {
    VcpuNumber::new(vcpu as u16).expect("a vCPU")
}

pub(super) fn hart_id(hart: usize) -> HartId {
    HartId::new(hart as u16).expect("a hart")
}

impl World {
    pub(super) fn new(tags: Tags) -> Self {
        let hart = OnHart {
            entries: 0,
            vmids: VmidTable::new(Purging::Fence, tags),
            vcpu: None,
            in_guest: false,
            declared: 0,
            mask: 0,
        };
        Self {
            harts: [hart.clone(), hart],
            vcpus: Default::default(),
            generations: [1, 1],
        }
    }

    pub(super) fn fences(&mut self, hart: usize, vcpu: usize, tags: Tags) -> Model<'_> {
        Model {
            generation: self.generations[VM[vcpu]],
            entries: &mut self.harts[hart].entries,
            tags,
            tag: tags.of(id(vcpu)),
        }
    }

    /// Marks all that `vcpu` has cached so far as stale, on every hart.
    pub(super) fn grow_stale(&mut self, vcpu: usize) {
        for hart in &mut self.harts {
            let fresh = hart.entries & (0b11 << (vcpu * 4));
            hart.entries = hart.entries & !(0b11 << (vcpu * 4)) | fresh << 2;
        }
    }

    pub(super) fn place_of(&self, vcpu: usize) -> Option<usize> {
        (0..HARTS).find(|hart| self.harts[*hart].vcpu == Some(vcpu))
    }

    /// Tests whether the guest on `hart` could use a stale entry.
    pub(super) fn could_go_wrong(&self, hart: usize, tags: Tags) -> bool {
        let place = &self.harts[hart];
        let (Some(vcpu), true) = (place.vcpu, place.in_guest) else {
            return false;
        };
        let tag = tags.of(id(vcpu));
        (0..VCPUS)
            .filter(|other| tags.of(id(*other)) == tag)
            .flat_map(|other| [false, true].map(|stale| (other, stale)))
            .flat_map(|(other, stale)| [1, 2].map(|generation| (other, stale, generation)))
            .filter(|(other, stale, generation)| {
                place.entries & bit(*other, *stale, *generation) != 0
            })
            .any(|(other, stale, generation)| other != vcpu || stale || generation < place.declared)
    }

    /// Lets the guests cache all that they can.
    pub(super) fn cache(&mut self) {
        for hart in &mut self.harts {
            if let (Some(vcpu), true) = (hart.vcpu, hart.in_guest) {
                hart.entries |= bit(vcpu, false, self.generations[VM[vcpu]]);
            }
        }
    }
}
