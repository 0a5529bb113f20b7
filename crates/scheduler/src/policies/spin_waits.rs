//! Spin waits: vCPUs that wait for the dispatch of partners.

use crate::base::id::{MAX_VCPUS, VcpuId, VcpuSet};

/// Control data of paper 000 §3.2.2.
///
/// A bit of ASPW is a member of `waiting`; DMASK of a vCPU is its entry in `masks`; GSPW of a VM is the number of its vCPUs in `waiting`. Between
/// calls:
///
/// - a vCPU waits if and only if its mask is not empty;
/// - a mask names partners that are in the ready queue and do not wait themselves.
///
/// By the second invariant every wait ends: the named partners need nothing but a hart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SpinWaits {
    waiting: VcpuSet,
    masks: [VcpuSet; MAX_VCPUS],
}

impl SpinWaits {
    pub(crate) fn new() -> Self {
        Self {
            waiting: VcpuSet::EMPTY,
            masks: [VcpuSet::EMPTY; MAX_VCPUS],
        }
    }

    /// All vCPUs in a spin wait.
    pub(crate) const fn waiting(&self) -> VcpuSet {
        self.waiting
    }

    /// Returns true if `vcpu` is in a spin wait.
    pub(crate) const fn waits(&self, vcpu: VcpuId) -> bool {
        self.waiting.contains(vcpu)
    }

    /// Partners that `vcpu` waits for.
    pub(crate) fn mask(&self, vcpu: VcpuId) -> VcpuSet {
        self.masks[vcpu.index()]
    }

    /// Begins a spin wait for `partners`, or ends it if there are none.
    pub(crate) fn wait(&mut self, vcpu: VcpuId, partners: VcpuSet) {
        self.masks[vcpu.index()] = partners;
        if partners.is_empty() {
            self.waiting.remove(vcpu)
        } else {
            self.waiting.insert(vcpu)
        }
    }

    /// Ends the spin wait of each of `vcpus`.
    pub(crate) fn release_all(&mut self, vcpus: VcpuSet) {
        for vcpu in vcpus.intersection(self.waiting).iter() {
            self.wait(vcpu, VcpuSet::EMPTY);
        }
    }

    /// Removes `vcpu` from the masks of `partners`. A wait ends when its mask is empty.
    pub(crate) fn strike(&mut self, vcpu: VcpuId, partners: VcpuSet) {
        for partner in partners.intersection(self.waiting).iter() {
            let mut mask = self.mask(partner);
            mask.remove(vcpu);
            self.wait(partner, mask);
        }
    }

    /// Copy with other identifiers of the vCPUs.
    #[cfg(test)]
    pub(crate) fn renumbered(&self, name: impl Fn(VcpuId) -> VcpuId) -> Self {
        let mut new = Self::new();
        for vcpu in self.waiting.iter() {
            let mask = self.mask(vcpu).iter().map(&name).collect();
            new.wait(name(vcpu), mask);
        }
        new
    }

    /// Ends all waits of and for `vcpu`, which is stopped or paused.
    pub(crate) fn forget(&mut self, vcpu: VcpuId, partners: VcpuSet) {
        self.wait(vcpu, VcpuSet::EMPTY);
        self.strike(vcpu, partners);
    }
}
