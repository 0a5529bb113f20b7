//! Allocation of harts to VMs, and its consequences.

use crate::base::id::{HartSet, MAX_VCPUS, VcpuId, VcpuSet, VmId};
use crate::config::{Allocation, ConfigError, Placement};
use crate::decision::Kicks;
use crate::dispatch::table::Scheduler;

impl Scheduler {
    pub(crate) fn free_vcpus(&self, count: u16) -> Option<VcpuSet> {
        let limit = u16::try_from(MAX_VCPUS).unwrap_or(u16::MAX);
        let last = limit.checked_sub(count)?;
        (0..=last).find_map(|first| {
            let places = (first..first + count).map_while(VcpuId::new);
            let places: VcpuSet = places.collect();
            places
                .iter()
                .all(|vcpu| self.vcpus[vcpu.index()].is_none())
                .then_some(places)
        })
    }

    pub(crate) fn check_allocation(
        &self,
        vm: VmId,
        vcpus: u16,
        to: Allocation,
    ) -> Result<(), ConfigError> {
        let others = || {
            self.vms
                .iter()
                .enumerate()
                .filter(move |(place, _)| *place != vm.index())
        };
        let mut dedicated: HartSet = (others())
            .filter_map(|(_, other)| other.filter(|other| other.dedicated))
            .flat_map(|other| other.vcpus.iter())
            .filter_map(|vcpu| self.vcpus[vcpu.index()]?.home)
            .collect();
        let mut sharing = others().any(|(_, other)| other.is_some_and(|other| !other.dedicated));
        match to {
            Allocation::Shared { share } => {
                if !(1..=10_000).contains(&share) {
                    return Err(ConfigError::Share);
                }
                sharing = true;
            }
            Allocation::Dedicated { harts } => {
                if harts.count() != u32::from(vcpus) {
                    return Err(ConfigError::DedicatedCount);
                }
                if !harts.without(self.online).is_empty() {
                    return Err(ConfigError::DedicatedOffline);
                }
                if !harts.intersection(dedicated).is_empty() {
                    return Err(ConfigError::DedicatedTwice);
                }
                dedicated = dedicated.union(harts);
            }
        }
        if sharing && self.online.without(dedicated).is_empty() {
            return Err(ConfigError::NoSharedHart);
        }
        Ok(())
    }

    /// Sets or clears the homes of the vCPUs of `vm`.
    pub(crate) fn allocate(&mut self, vm: VmId, to: Allocation) {
        let vcpus = self.vcpus(vm);
        match to {
            Allocation::Shared { .. } => {
                for vcpu in vcpus.iter() {
                    if let Some(vcpu) = self.vcpu_mut(vcpu) {
                        vcpu.home = None;
                    }
                }
            }
            Allocation::Dedicated { harts } => {
                for (vcpu, hart) in vcpus.iter().zip(harts.iter()) {
                    if let Some(vcpu) = self.vcpu_mut(vcpu) {
                        vcpu.home = Some(hart);
                    }
                }
            }
        }
    }

    /// Updates everything that follows from the allocations, and kicks harts whose vCPUs may not run there any more.
    pub(crate) fn revise(&mut self) -> Kicks {
        let dedicated: HartSet = (self.vcpus.iter().flatten())
            .filter(|vcpu| self.vms[vcpu.vm.index()].is_some_and(|vm| vm.dedicated))
            .filter_map(|vcpu| vcpu.home)
            .collect();
        self.shared = self.online.without(dedicated);
        self.place();
        let mut sharing = self
            .vms
            .iter()
            .take(self.vms_end)
            .flatten()
            .filter(|vm| !vm.dedicated);
        self.per_vcpu_accounts = match sharing.clone().next() {
            Some(_) => sharing.all(|vm| vm.placement == Placement::Fixed),
            None => self.config.placement == Placement::Fixed,
        };
        let every: VcpuSet = (0..)
            .map_while(VcpuId::new)
            .filter(|vcpu| self.vcpus[vcpu.index()].is_some())
            .collect();
        for hart in self.online.iter() {
            let here = every
                .iter()
                .filter(|&vcpu| self.allowed(vcpu).contains(hart))
                .collect();
            self.may_run[hart.index()] = here;
        }
        self.set_quantities();
        let evicted = self.online.iter().filter(|hart| {
            self.running(*hart)
                .is_some_and(|vcpu| !self.may_run[hart.index()].contains(vcpu))
        });
        let evicted = Kicks(evicted.collect());
        evicted.and(self.assign_harts())
    }

    /// Gives each vCPU under fixed scheduling the shared hart with the fewest vCPUs so far.
    pub(crate) fn place(&mut self) {
        for index in (0..).map_while(VcpuId::new) {
            let Some(vcpu) = self.vcpus[index.index()] else {
                continue;
            };
            let vm = self.vms[vcpu.vm.index()];
            let Some(vm) = vm.filter(|vm| !vm.dedicated) else {
                continue;
            };
            let settled = vcpu.home.is_some_and(|home| self.shared.contains(home));
            let home = match vm.placement {
                Placement::Floating => None,
                Placement::Fixed if settled => vcpu.home,
                Placement::Fixed => self.shared.iter().min_by_key(|&hart| {
                    self.vcpus
                        .iter()
                        .flatten()
                        .filter(|other| other.home == Some(hart))
                        .count()
                }),
            };
            if let Some(vcpu) = self.vcpu_mut(index) {
                vcpu.home = home;
            }
        }
        self.lay_out_matrix();
    }
}
