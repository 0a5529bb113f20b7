//! Passes: how far each virtual machine has come, and who is too far ahead to run now.
//!
//! A virtual machine's *pass* is the time that it has had over its part of the shares: it grows by a *stride* for each tick (Waldspurger
//! and Weihl's stride scheduling, MIT/LCS/TM-528, 1995, with virtual machines as clients). One rule keeps the shares: no vCPU is dispatched whose machine is
//! more than a slice ahead of another one that has a vCPU ready for the same hart. All else is as the queues say, so that within
//! this slice the order of the ready queue, and who is preferred on which hart, remain.
//!
//! Who wants nothing saves nothing: the scheduler's own pass is that of the ready machine that is furthest behind, and it never
//! goes back. A machine that wanted no hart and now does is not behind it. Time of a stay that is not over counts.
//!
//! Paper 000's rounds keep the shares where the papers' order or terms are asked for (`affinity` 0, `relaxed-terms` 0), and where all that
//! share are fixed.

use crate::hart::Doing;
use crate::id::{HartId, HartSet, VcpuId, VcpuSet, VmId};
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::Vm;

/// A stay is at most what a machine is due in so many slices.
const SLICES_TO_A_STAY: u64 = 2;

impl Scheduler {
    /// Whether passes keep the shares, and not paper 000's rounds.
    #[inline]
    pub(crate) fn goes_by_pass(&self) -> bool {
        let ours = self.config.affinity > 0 && self.config.relaxes;
        ours && !self.own_accounts
    }

    /// Takes, for a vCPU of `vm` that goes to another scheduler, its part of what the machine is ahead here, in ticks; less than nothing where
    /// it is behind.
    pub(crate) fn give_lead(&mut self, vm: VmId, parts: u32) -> i64 {
        let pass = self.pass;
        let vm = self.vms[vm.index()].as_mut();
        vm.map_or(0, |vm| vm.service.give_lead(pass, parts))
    }

    /// Adds to the machine's pass here what a vCPU of it brings along. One that had none here begins level with the others.
    pub(crate) fn receive_lead(&mut self, vm: VmId, lead: i64) {
        let pass = self.pass;
        if let Some(vm) = self.vms[vm.index()].as_mut() {
            let anew = vm.vcpus.is_empty();
            vm.service.receive_lead(anew.then_some(pass), lead);
        }
    }

    /// How far one may be ahead of another that is ready.
    fn leeway(&self) -> i128 {
        i128::from(self.config.slice.get())
    }

    /// The least that `vm`'s pass can be: one whose few vCPUs always run cannot have its share, and saves up no more than a round.
    fn least_of(&self, vm: &Vm) -> i128 {
        self.pass - self.leeway() - vm.service.strides(self.round())
    }

    /// `vm`'s pass at `now`, with what it has had of stays that are not over.
    fn pass_of(&self, vm: &Vm, now: Ticks) -> i128 {
        let pass = vm.service.pass() + vm.service.strides(self.had_of_stays(vm, now));
        pass.max(self.least_of(vm))
    }

    /// What `vm` has had of stays that are not over, and is to pay.
    fn had_of_stays(&self, vm: &Vm, now: Ticks) -> Ticks {
        let mut had: u64 = 0;
        for hart in self.online.iter() {
            if let Doing::Running(run) = &self.harts[hart.index()].doing
                && let Some(from) = run.charged_from
                && vm.vcpus.contains(run.vcpu)
            {
                had = had.saturating_add((now - (run.entered + from)).get());
            }
        }
        Ticks::new(had)
    }

    /// Sets the pass that whoever `hart` dispatches may not exceed: a slice more than that of the machine furthest behind which has a
    /// vCPU ready here.
    #[inline]
    pub(crate) fn set_limit(&mut self, hart: HartId, now: Ticks) {
        if self.goes_by_pass() {
            self.set_limit_by_pass(hart, now);
        }
    }

    fn set_limit_by_pass(&mut self, hart: HartId, now: Ticks) {
        let mut rest = self.dispatchable_on(hart);
        let mut least: Option<i128> = None;
        while let Some(vcpu) = rest.first() {
            rest = rest.without(self.partners(vcpu));
            if self.has_own_hart(vcpu) {
                continue;
            }
            let pass = self.vm(vcpu).map(|vm| self.pass_of(vm, now));
            least = pass.into_iter().chain(least).min();
        }
        let Some(least) = least else { return };
        self.pass = self.pass.max(least);
        self.harts[hart.index()].limit = Some(least + self.leeway());
    }

    /// Whether `vcpu`'s machine is too far ahead for `hart`, which searches.
    #[inline]
    pub(crate) fn is_ahead(&self, hart: HartId, vcpu: VcpuId, now: Ticks) -> bool {
        let Some(limit) = self.harts[hart.index()].limit else {
            return false;
        };
        let vm = self.vm(vcpu).filter(|vm| !vm.dedicated);
        vm.is_some_and(|vm| self.pass_of(vm, now) > limit)
    }

    /// Those of `among` that are too far ahead for `hart`.
    pub(crate) fn those_ahead(&self, hart: HartId, among: VcpuSet, now: Ticks) -> VcpuSet {
        let mut ahead = VcpuSet::EMPTY;
        if self.harts[hart.index()].limit.is_none() {
            return ahead;
        }
        let mut rest = among;
        while let Some(vcpu) = rest.first() {
            let partners = self.partners(vcpu);
            rest = rest.without(partners);
            if self.is_ahead(hart, vcpu, now) {
                ahead = ahead.union(partners);
            }
        }
        ahead
    }

    /// `vcpu` is dispatched: its machine is no further behind than one can be.
    #[inline]
    pub(crate) fn catch_up(&mut self, vcpu: VcpuId, now: Ticks) {
        if !self.goes_by_pass() {
            return;
        }
        let Some(vm) = self.vm(vcpu) else { return };
        let least = self.least_of(vm);
        if vm.service.pass() < least {
            // What it has had of other stays is yet to come.
            let least = least - vm.service.strides(self.had_of_stays(vm, now));
            if let Some(vm) = self.vm_mut(vcpu) {
                vm.service.catch_up(least);
            }
        }
    }

    /// `vcpu` has waited, and wants a hart now. If its machine wanted none before, it has saved up nothing.
    #[inline]
    pub(crate) fn begin_to_want(&mut self, vcpu: VcpuId) {
        if !self.goes_by_pass() {
            return;
        }
        let wanting = self.working.union(self.queues.ready());
        if wanting.intersection(self.partners(vcpu)).is_empty() {
            let least = self.pass - self.leeway();
            if let Some(vm) = self.vm_mut(vcpu) {
                vm.service.catch_up(least);
            }
        }
    }

    /// A vCPU that may run on these harts is ready, and none of them is free: from now on those who run there pay, also where nobody else
    /// wanted the hart when their stay began.
    pub(crate) fn begin_to_pay(&mut self, allowed: HartSet) {
        for hart in self.unpaid.intersection(allowed).iter() {
            if let Doing::Running(run) = &mut self.harts[hart.index()].doing {
                run.charged_from = Some(self.clock - run.entered);
            }
            self.unpaid.remove(hart);
        }
    }

    /// The longest stay of `vcpu` while others wait: what its machine is due in a few slices, for all of its vCPUs that are on harts, so
    /// that one with a small share has a little often; but a millisecond at least.
    pub(crate) fn longest_stay(&self, vcpu: VcpuId) -> Ticks {
        let shortest = self.config.frequency.div_ceil(1000);
        let round = u64::from(self.config.round);
        let working = self.working.intersection(self.partners(vcpu)).count();
        let parts = round.max(u64::from(working.min(1)));
        let due = self.service(vcpu).map(|service| {
            let quantity = service.quantity().get();
            quantity.saturating_mul(SLICES_TO_A_STAY) / parts
        });
        due.map_or(Ticks::new(u64::MAX), |due| Ticks::new(due.max(shortest)))
    }
}
