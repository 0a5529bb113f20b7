//! Service quantities: time that each VM may consume in a round before it goes out of service.
//!
//! Paper 000 §3.2.2 gives each VM a *designated service quantity* in proportion to its share. Under floating scheduling the account belongs to the VM,
//! so that a share does not depend on the number of vCPUs. If all VMs that share harts are fixed, each vCPU has a part of it, because a hart cannot
//! wait for what happens on others.

use crate::base::id::{HartId, MAX_VCPUS, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Vm;
use crate::policies::queues::Queue;
use crate::policies::service::Service;
use crate::policies::virtual_time::InverseWeight;

impl Scheduler {
    /// Account that `vcpu` consumes from; none on a dedicated hart, and none where slots keep the shares.
    #[inline]
    pub(crate) fn service(&self, vcpu: VcpuId) -> Option<&Service> {
        let entry = self.vcpus[vcpu.index()].as_ref()?;
        if entry.dedicated || self.co_schedules() {
            return None;
        }
        match self.per_vcpu_accounts {
            true => Some(&entry.service),
            false => Some(&self.vms[entry.vm.index()].as_ref()?.service),
        }
    }

    #[inline]
    fn service_mut(&mut self, vcpu: VcpuId) -> Option<&mut Service> {
        let fixed = self.per_vcpu_accounts;
        let by_slots = self.co_schedules();
        let entry = self.vcpus[vcpu.index()].as_mut()?;
        if entry.dedicated || by_slots {
            return None;
        }
        match fixed {
            true => Some(&mut entry.service),
            false => Some(&mut self.vms[entry.vm.index()].as_mut()?.service),
        }
    }

    /// Returns true if `vcpu` may not run in this round any more.
    #[inline]
    pub(crate) fn is_out_of_service(&self, vcpu: VcpuId) -> bool {
        self.out_of_service.contains(vcpu)
    }

    /// Updates the set of vCPUs out of service after accounts have changed.
    pub(crate) fn update_out_of_service(&mut self) {
        self.out_of_service = if self.co_schedules() {
            VcpuSet::EMPTY
        } else if self.per_vcpu_accounts {
            let out = |&vcpu: &VcpuId| self.service(vcpu).is_some_and(Service::is_out);
            self.occupied.iter().filter(out).collect()
        } else {
            let out = self.sharing().filter(|vm| vm.service.is_out());
            out.fold(VcpuSet::EMPTY, |out, vm| out.union(vm.vcpus))
        };
    }

    /// Time that `vcpu` may run before it goes out of service, at least a millisecond: shorter runs cost more than they serve.
    pub(crate) fn quantity_left(&self, vcpu: VcpuId) -> Ticks {
        let left = self.service(vcpu).map(Service::credit);
        left.map_or(Ticks::new(u64::MAX), |left| left.max(self.millisecond))
    }

    /// Charges time in which other vCPUs wanted the hart: at least a tick, so that no number of short runs is free.
    ///
    /// If this consumes the service quantity, ready partners go out of service before `vcpu`, so that they are served first in the next round.
    #[inline]
    pub(crate) fn charge(&mut self, vcpu: VcpuId, ran: Ticks) {
        let Some(service) = self.service_mut(vcpu) else {
            return;
        };
        service.charge(ran.max(Ticks::new(1)));
        if service.is_out() {
            self.end_service(vcpu);
        }
    }

    /// Puts the VM of `vcpu`, whose account is overdrawn, out of service.
    #[inline(never)]
    fn end_service(&mut self, vcpu: VcpuId) {
        if self.per_vcpu_accounts {
            return self.out_of_service.insert(vcpu);
        }
        let partners = self.partners(vcpu);
        self.out_of_service = self.out_of_service.union(partners);
        self.move_members(Queue::ProperReady, partners, Queue::OutService);
        self.move_members(Queue::TimeSliceEnd, partners, Queue::OutService);
    }

    /// Grants a service quantity to all vCPUs that may run on `hart`, as often as needed until one of `out` is in service again.
    pub(crate) fn begin_round(&mut self, hart: HartId, out: VcpuSet) {
        let rounds = (out.iter())
            .filter_map(|vcpu| self.service(vcpu).map(Service::rounds_to_service))
            .min()
            .unwrap_or(1);
        if self.per_vcpu_accounts {
            for vcpu in self.may_run[hart.index()].iter() {
                if let Some(service) = self.service_mut(vcpu) {
                    service.refill(rounds);
                }
            }
        } else {
            self.for_each_sharing(|vm| vm.service.refill(rounds));
        }
        self.update_out_of_service();
    }

    /// Length of a service round.
    pub(crate) fn round(&self) -> Ticks {
        let slice = self.config.slice.get();
        Ticks::new(slice.saturating_mul(u64::from(self.config.round)))
    }

    /// Updates all service quantities to shares, slices and harts.
    pub(crate) fn set_quantities(&mut self) {
        let slice = self.config.slice;
        let round = self.round();
        let harts = self.shared.count().max(1);
        let shares = self.sharing().map(Vm::share_here).sum();
        self.for_each_sharing(|vm| {
            vm.inverse_weight = InverseWeight::of(vm.share);
            let share = vm.share_here();
            vm.service
                .set_quantity((share, shares), (harts, round), slice);
        });
        if self.per_vcpu_accounts {
            self.set_quantities_of_vcpus(round, slice);
        }
        self.weigh_slots();
        self.update_out_of_service();
    }

    /// Updates the quantities of vCPUs under fixed scheduling, where each has an account.
    fn set_quantities_of_vcpus(&mut self, round: Ticks, slice: Ticks) {
        for hart in self.shared.iter() {
            let here = self.may_run[hart.index()];
            let share = |vcpu: VcpuId| self.vm(vcpu).map_or(0, Vm::share_of_vcpu);
            let shares: u64 = here.iter().map(share).sum();
            for vcpu in here.iter() {
                let share = self.vm(vcpu).map_or(0, Vm::share_of_vcpu);
                if let Some(service) = self.service_mut(vcpu) {
                    service.set_quantity((share, shares), (1, round), slice);
                }
            }
        }
    }
}

impl Vm {
    /// Part of the share that counts in this scheduler, in fractions fine enough for a sixty-fourth of the smallest share.
    fn share_here(&self) -> u64 {
        const FINE: u64 = 64;
        let (parts, of) = self.part;
        u64::from(self.share) * FINE * u64::from(parts) / u64::from(of.max(1))
    }

    /// Part of the share of each vCPU, scaled to a whole number.
    fn share_of_vcpu(&self) -> u64 {
        self.share_here() * MAX_VCPUS as u64 / u64::from(self.vcpus.count().max(1))
    }
}
