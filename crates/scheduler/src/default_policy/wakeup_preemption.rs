//! Wake-up preemption by weighted virtual time (as in EEVDF): a woken vCPU preempts one whose VM is ahead.
//!
//! Service quantities (`dispatch/service.rs`) keep shares over rounds. Within a round a vCPU keeps its hart to the end of its slice, so a VM that
//! needs little time often would wait for a slice each time. Two VMs are compared when a vCPU of one is woken and a vCPU of the other has its
//! hart. Then the lag between them is clamped: neither sleep nor work on an idle computer counts for ever.

use crate::base::choice;
use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::Kicks;
use crate::dispatch::hart::Run;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Vm;
use crate::policies::queues::Queue;
use crate::policies::virtual_time::VirtualTime;

/// Bound on the lag between two VMs, in slices.
const MAX_LAG_SLICES: u64 = 2;
/// Lag at which a woken vCPU preempts, in slices. VMs with equal needs have a smaller lag most of the time, and gain nothing by preemption.
const PREEMPTION_LAG_SLICES: u64 = 1;

impl Vm {
    /// Adds `ran` of one vCPU to the VM's virtual time.
    #[inline]
    pub(crate) const fn account(&mut self, ran: Ticks) {
        self.wakeup_vruntime = self
            .wakeup_vruntime
            .after(self.inverse_weight.vruntime(ran));
    }

    /// Clamps the VM's lag behind `other` to [`MAX_LAG_SLICES`].
    fn clamp_lag(&mut self, other: VirtualTime, slice: Ticks) {
        let max = Ticks::new(slice.get().saturating_mul(MAX_LAG_SLICES));
        let max = self.inverse_weight.vruntime(max);
        if other.since(self.wakeup_vruntime) > max.cast_signed() {
            self.wakeup_vruntime = other.before(max);
        }
    }
}

impl Scheduler {
    /// Charges both context switches of a wake-up preemption to the preempting VM. Without this, a VM that sleeps and wakes could keep
    /// others off their harts.
    #[cold]
    #[inline(never)]
    pub(crate) fn charge_preemption(&mut self, run: Run, round_trip: Ticks) {
        if let Some(vm) = self.vm_mut(run.vcpu) {
            vm.account(round_trip);
            vm.boost_vruntime = vm
                .boost_vruntime
                .wrapping_add(vm.inverse_weight.vruntime(round_trip));
        }
    }

    /// Returns true if the VM of `vcpu` lags enough to preempt `run`, which has had its hart for `ran`.
    #[inline(always)]
    fn lags_behind(&mut self, vcpu: VcpuId, run: Run, ran: Ticks) -> bool {
        let (Some(mine), Some(theirs)) = (
            self.vcpus[vcpu.index()].as_ref(),
            self.vcpus[run.vcpu.index()].as_ref(),
        ) else {
            return false;
        };
        if mine.vm == theirs.vm || mine.dedicated || theirs.dedicated {
            return false;
        }
        let (mine, theirs) = (mine.vm.index(), theirs.vm.index());
        let slice = self.config.slice;
        let own = self.vms[mine].as_ref().map(|vm| vm.wakeup_vruntime);
        let (Some(own), Some(theirs)) = (own, self.vms[theirs].as_mut()) else {
            return false;
        };
        theirs.clamp_lag(own, slice);
        let now = theirs
            .wakeup_vruntime
            .after(theirs.inverse_weight.vruntime(ran));
        let Some(mine) = self.vms[mine].as_mut() else {
            return false;
        };
        mine.clamp_lag(now, slice);
        let enough = mine.inverse_weight.vruntime(Ticks::new(
            slice.get().saturating_mul(PREEMPTION_LAG_SLICES),
        ));
        let lag = now.since(mine.wakeup_vruntime);
        choice::either(lag >= enough.cast_signed())
    }

    /// Hart that `vcpu` would take from another vCPU if it were woken now: its last one, if no hart is free, no preemption is pending
    /// there, and its VM lags.
    pub(crate) fn preemption_target(&mut self, vcpu: VcpuId, now: Ticks) -> Option<HartId> {
        if self.co_schedules() {
            return self.alternate_to_preempt(vcpu);
        }
        let hart = self
            .last_hart(vcpu)
            .filter(|_| self.rules.preempts_on_wake)?;
        let run = self.harts[hart.index()].run()?;
        let free = self.searching.union(self.idle).union(self.in_place);
        let is_free = !free.intersection(self.may_dispatch(vcpu)).is_empty();
        let preempts = !is_free
            && self.candidates(hart).contains(vcpu)
            && !self.is_out_of_service(vcpu)
            && self.pending_preemption(hart).is_none()
            && (self.fills_gap(hart) && self.boosted_vcpus().contains(vcpu)
                || self.lags_behind(vcpu, run, now - run.since));
        preempts.then_some(hart)
    }

    /// Preempts the vCPU on the last hart of `vcpu`, which was woken, if the VM of `vcpu` lags.
    pub(crate) fn preempt_on_wake(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let ready = self.queues.ready().contains(vcpu);
        let Some(hart) = self.preemption_target(vcpu, now).filter(|_| ready) else {
            return Kicks::NONE;
        };
        self.preempted_harts.insert(hart);
        self.preempting[hart.index()] = Some(vcpu);
        Kicks(HartSet::only(hart))
    }

    /// Notes that an interrupt of `vcpu`, which waits, has interrupted the hypervisor. If waiting vCPUs are found by tests, only a vCPU that
    /// preempts is woken: another one stays where its hart finds it, and no other hart takes it away.
    pub fn interrupt_waiter(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let waits = self.queues.queue_of(vcpu) == Some(Queue::SelfWait);
        match !self.rules.tests || waits && self.preemption_target(vcpu, now).is_some() {
            true => self.wake(vcpu, now),
            false => Kicks::NONE,
        }
    }

    /// vCPU that preempts the one on `hart`.
    #[inline]
    pub(crate) fn pending_preemption(&self, hart: HartId) -> Option<VcpuId> {
        match self.preempted_harts.contains(hart) {
            true => self.preempting[hart.index()].filter(|&vcpu| self.can_preempt(hart, vcpu)),
            false => None,
        }
    }

    /// Ends the preemption on `hart`. Returns the preempting vCPU.
    #[inline]
    pub(crate) fn end_preemption(&mut self, hart: HartId) -> Option<VcpuId> {
        if !self.preempted_harts.contains(hart) {
            return None;
        }
        self.preempted_harts.remove(hart);
        self.preempting[hart.index()].take()
    }

    /// Ends the preemptions by `vcpus`, which are gone.
    pub(crate) fn forget_preemptions(&mut self, vcpus: VcpuSet) {
        for hart in self.preempted_harts.iter() {
            if self.preempting[hart.index()].is_some_and(|vcpu| vcpus.contains(vcpu)) {
                let _ = self.end_preemption(hart);
            }
        }
    }

    fn can_preempt(&self, hart: HartId, vcpu: VcpuId) -> bool {
        self.dispatchable_on(hart).contains(vcpu) && !self.is_out_of_service(vcpu)
    }

    /// vCPUs that wait on `hart` for interrupts alone and whose VMs lag behind the one that has the hart. An interrupt of one of them is to
    /// interrupt the hypervisor, which wakes it.
    #[must_use]
    #[inline]
    pub fn waiters_to_watch(&mut self, hart: HartId) -> VcpuSet {
        let watched = self.watched(hart).without(self.word_waiters);
        if self.co_schedules() {
            return self.waiters_in_slot(watched);
        }
        match watched.is_empty() || !self.rules.preempts_on_wake {
            true => VcpuSet::EMPTY,
            false => self.lagging_among(watched, hart),
        }
    }

    #[inline(never)]
    fn lagging_among(&mut self, watched: VcpuSet, hart: HartId) -> VcpuSet {
        let Some(run) = self.harts[hart.index()].run() else {
            return VcpuSet::EMPTY;
        };
        let mut lagging = VcpuSet::EMPTY;
        let mut rest = watched;
        while let Some(vcpu) = rest.first() {
            rest.remove(vcpu);
            if self.lags_behind(vcpu, run, Ticks::ZERO) {
                lagging.insert(vcpu);
            }
        }
        lagging
    }
}
