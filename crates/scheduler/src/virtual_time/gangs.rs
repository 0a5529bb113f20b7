//! Gangs by need: a VM that loses time at locks gets its harts together for a slice.
//!
//! A gang's slice begins when a hart chooses an eligible VM that needs it. Until its end, the VM comes first on every hart, and ready vCPUs of it preempt others
//! at once. Its vCPUs spin on their harts, as they would alone, while none of them needs a hart. Others fill the gaps, and their harts poll whether the VM
//! can use them. The VM pays for all of its time, so a need that is pretended changes when it has its share, and not how much.

use crate::base::choice;
use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet, VmId, VmSet};
use crate::base::ticks::Ticks;
use crate::decision::{Kicks, Leave, Left};
use crate::dispatch::table::Scheduler;
use crate::policies::vm_boost::VmBoost;

impl Scheduler {
    /// Notes what the VM of `vcpu` has used and lost by a stay on a hart.
    #[inline]
    pub(crate) fn note_need(&mut self, vcpu: VcpuId, used: Ticks, left: &Left) {
        if !self.by_account() {
            return;
        }
        let slice = self.config.slice;
        let at_lock = matches!(
            left.cause,
            Leave::Spin | Leave::SpinOnWord | Leave::SpinForTurn
        );
        let lost = if at_lock {
            left.round_trip
        } else {
            Ticks::ZERO
        };
        if let Some(vm) = self.vm_mut(vcpu) {
            vm.need.add(used, lost, (slice, left.round_trip));
        }
    }

    /// vCPUs of the gang that has its slice.
    #[inline]
    pub(crate) fn gang(&self) -> VcpuSet {
        match self.vm_boost.max_harts {
            0 => VcpuSet::EMPTY,
            _ => self.boosted_vcpus(),
        }
    }

    /// Ends a gang's slice that is over. Then other VMs' harts poll for the VM that is due most of those that wait for words and have no hart.
    pub(crate) fn end_gang(&mut self, now: Ticks) {
        if self.vm_boost.max_harts > 0 && choice::either(now < self.vm_boost.until) {
            return;
        }
        self.vm_boost = VmBoost::default();
        if self.word_waiters.is_empty() {
            return;
        }
        let mean = self.mean_time;
        let lag = |vm: &VmId| {
            let entry = self.vms[vm.index()].as_ref()?;
            let waits = !entry.vcpus.intersection(self.word_waiters).is_empty()
                && entry.vcpus.intersection(self.executing).is_empty();
            Some(entry.account.lag(mean)).filter(|lag| waits && *lag >= 0)
        };
        let waiting: VmSet = self.present.iter().filter(|vm| lag(vm).is_some()).collect();
        let most = waiting.iter().max_by_key(lag);
        self.vm_boost.vm = choice::vm(most, waiting);
    }

    /// Begins a slice on all harts of the VM of `chosen`, the next vCPU of `hart`, if the VM needs that and is eligible.
    #[inline]
    pub(crate) fn begin_gang(&mut self, hart: HartId, chosen: VcpuId, now: Ticks) {
        // Gangs that ended each other's slices would do nothing but that.
        if !self.gang().is_empty() {
            return;
        }
        let needs = self.vm(chosen).is_some_and(|vm| vm.need.is_gang());
        if choice::either(needs) {
            self.gather(hart, chosen, now);
        }
    }

    #[inline(never)]
    fn gather(&mut self, hart: HartId, chosen: VcpuId, now: Ticks) {
        let vm = self.vm_of(chosen);
        let entry = vm.and_then(|vm| self.vms[vm.index()].as_ref());
        let Some(entry) = entry.filter(|entry| !entry.dedicated) else {
            return;
        };
        if entry.account.lead(self.mean_time) > 0 {
            return;
        }
        self.vm_boost = VmBoost {
            vm,
            until: now + self.config.slice,
            max_harts: entry.vcpus.count(),
            ..VmBoost::default()
        };
        let ready = self.queues.ready().without(self.spin_waits.waiting());
        let members = entry.vcpus.intersection(ready);
        let mut harts = self.harts_to_gather(hart);
        let mut rest = members.without(VcpuSet::only(chosen));
        while let Some(vcpu) = choice::vcpu(rest) {
            rest.remove(vcpu);
            let Some(to) = self.hart_for(vcpu, harts) else {
                continue;
            };
            harts.remove(to);
            self.preempted_harts.insert(to);
            self.preempting[to.index()] = Some(vcpu);
            self.gathered.insert(to);
        }
    }

    /// Harts, besides `hart`, whose vCPUs make room for a gang's.
    fn harts_to_gather(&self, hart: HartId) -> HartSet {
        let gang = self.gang();
        let makes_room = |other: &HartId| {
            *other != hart
                && self.pending_preemption(*other).is_none()
                && self.harts[other.index()]
                    .run()
                    .is_some_and(|run| !run.in_place && !gang.contains(run.vcpu))
        };
        self.shared.iter().filter(makes_room).collect()
    }

    /// Hart of `harts` for `vcpu`: its last one, or that of the VM that lags least.
    fn hart_for(&self, vcpu: VcpuId, harts: HartSet) -> Option<HartId> {
        let harts = harts.intersection(self.may_dispatch(vcpu));
        let last = self.last_hart(vcpu).filter(|&last| harts.contains(last));
        let mean = self.mean_time;
        let lag = |hart: HartId| {
            let vm = self.running(hart).and_then(|vcpu| self.vm(vcpu));
            vm.map_or(0, |vm| vm.account.lag(mean))
        };
        let least = harts.iter().map(lag).min();
        let least_due = harts.iter().filter(|&hart| Some(lag(hart)) == least);
        last.or_else(|| choice::hart(least_due.collect()))
    }

    /// Harts that are to make room for a gang since this was asked last.
    #[inline]
    pub(crate) fn take_gathered(&mut self) -> Kicks {
        Kicks(core::mem::take(&mut self.gathered))
    }

    /// End of a stay of `left` from now on: that of the gang's slice for its vCPUs.
    #[inline]
    pub(crate) fn end_in_gang(&self, vcpu: VcpuId, now: Ticks, left: Ticks) -> Ticks {
        match self.gang().contains(vcpu) {
            true => (self.vm_boost.until - now).max(Ticks::new(self.config.slice.get() / 8)),
            false => left,
        }
    }

    /// Returns true if `vcpu` spins on its hart as it would alone: its gang has its slice, a partner runs, and none needs a hart.
    pub(crate) fn spins_in_gang(&self, vcpu: VcpuId) -> bool {
        let gang = self.gang();
        let partners = gang.without(VcpuSet::only(vcpu));
        gang.contains(vcpu)
            && !partners.intersection(self.executing).is_empty()
            && gang.intersection(self.queues.ready()).is_empty()
    }
}
