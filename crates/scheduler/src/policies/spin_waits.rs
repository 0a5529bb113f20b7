//! Spin waits: who waits for whom to be dispatched.

use crate::base::id::{MAX_VCPUS, VcpuId, VcpuSet};

/// The control data of paper 000 §3.2.2.
///
/// A bit of ASPW is a member of `waiting`; DMASK of a vCPU is its entry in `masks`; GSPW of a virtual
/// machine is the number of its vCPUs in `waiting`, boost_accounted when asked. What holds between calls:
///
/// - a vCPU waits if and only if its mask is not empty;
/// - a mask names partners that are in the ready queue and do not wait themselves.
///
/// The second is why nobody waits for ever: whoever is waited for needs nothing but a hart.
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

    /// Whether `vcpu` is in a spin wait.
    pub(crate) const fn waits(&self, vcpu: VcpuId) -> bool {
        self.waiting.contains(vcpu)
    }

    /// The partners that `vcpu` waits for.
    pub(crate) fn mask(&self, vcpu: VcpuId) -> VcpuSet {
        self.masks[vcpu.index()]
    }

    /// Begins a spin wait for `partners`; without any there is none.
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

    /// `vcpu` need not be waited for any more by any of `partners`, whose waits end when nobody is
    /// left to wait for.
    pub(crate) fn strike(&mut self, vcpu: VcpuId, partners: VcpuSet) {
        for partner in partners.intersection(self.waiting).iter() {
            let mut mask = self.mask(partner);
            mask.remove(vcpu);
            self.wait(partner, mask);
        }
    }

    /// The same waits with other names for the vCPUs.
    #[cfg(test)]
    pub(crate) fn renumbered(&self, name: impl Fn(VcpuId) -> VcpuId) -> Self {
        let mut new = Self::new();
        for vcpu in self.waiting.iter() {
            let mask = self.mask(vcpu).iter().map(&name).collect();
            new.wait(name(vcpu), mask);
        }
        new
    }

    /// `vcpu` is stopped or paused: it waits for nobody, and nobody waits for it.
    pub(crate) fn forget(&mut self, vcpu: VcpuId, partners: VcpuSet) {
        self.wait(vcpu, VcpuSet::EMPTY);
        self.strike(vcpu, partners);
    }
}
