//! The vCPU that a hart runs next, and the one that preempts.

use crate::base::choice;
use crate::base::id::{HartId, VcpuId, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::decision::Probe;
use crate::dispatch::hart::Run;
use crate::dispatch::table::Scheduler;
use crate::policies::queues::Queue;

/// Times that a hart passes over the first pinned vCPU for vCPUs of other VMs; few for the model checker.
const MAX_PASSES: u8 = if cfg!(test) { 1 } else { 16 };

impl Scheduler {
    /// Chooses the next vCPU of `hart`: one of the VM that comes first by its account.
    pub(crate) fn choose_by_account(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        if !self.queues.members(Queue::SelfWait).is_empty() {
            self.end_waits_here(hart, now, probe);
        }
        self.end_gang(now);
        let ready = self.dispatchable_on(hart);
        let first = ready.first()?;
        if let Some(vcpu) = self.pending_preemption(hart) {
            return Some(vcpu);
        }
        let of_gang = ready.intersection(self.gang());
        if !of_gang.is_empty() {
            return self.next_member(hart, of_gang);
        }
        if let Some(vcpu) = self.yielded_to(hart, ready) {
            return Some(vcpu);
        }
        let chosen = match ready.without(self.partners(first)).is_empty() {
            true => self.next_member(hart, ready)?,
            false => self.next_among(hart, ready)?,
        };
        self.begin_gang(hart, chosen, now);
        Some(chosen)
    }

    /// Next vCPU of `ready`, which are of several VMs.
    #[inline(never)]
    fn next_among(&mut self, hart: HartId, ready: VcpuSet) -> Option<VcpuId> {
        let vm = self.next_vm(hart, ready)?;
        let members = ready.intersection(self.vcpus(vm));
        self.out_of_patience(hart, ready, members)
            .or_else(|| self.next_member(hart, members))
    }

    /// Partner that the last vCPU of `hart` has yielded to, unless its VM is ahead by a slice: yields do not make a slice longer than that.
    fn yielded_to(&self, hart: HartId, ready: VcpuSet) -> Option<VcpuId> {
        let next = self.harts[hart.index()].next;
        let vcpu = next.filter(|&vcpu| ready.contains(vcpu))?;
        let lag = self.vm(vcpu)?.account.lag(self.mean_time);
        (lag >= -self.config.slice.signed()).then_some(vcpu)
    }

    /// First pinned vCPU of `ready` in the queue, if `hart` has passed over such a one too often in a row for vCPUs of other VMs.
    ///
    /// Accounts bound the wait of a VM, and turns within the VM that of a vCPU. A vCPU that is pinned to one hart has neither if its VM has its share
    /// elsewhere.
    fn out_of_patience(
        &mut self,
        hart: HartId,
        ready: VcpuSet,
        members: VcpuSet,
    ) -> Option<VcpuId> {
        let is_pinned = |vcpu: &VcpuId| {
            let entry = self.vcpus[vcpu.index()].as_ref();
            entry.is_some_and(|entry| entry.home.is_some())
        };
        let pinned = ready.iter().filter(is_pinned).collect();
        let first = self.queues.first_of_ready(pinned)?;
        let place = &mut self.harts[hart.index()];
        if members.contains(first) {
            place.passes = 0;
            return None;
        }
        let is_over = place.passes >= MAX_PASSES;
        place.passes = if is_over { 0 } else { place.passes + 1 };
        is_over.then_some(first)
    }

    /// Makes the waiting vCPUs ready whose words have changed, or for which `hart` finds an interrupt.
    fn end_waits_here(&mut self, hart: HartId, now: Ticks, probe: &mut impl Probe) {
        // As if the budget were spent: none is taken before the others.
        let by_word = match self.word_waiters.is_empty() {
            true => None,
            false => self.take_by_word(hart, true, now, probe),
        };
        let by_interrupt = self.take_by_interrupt(hart, true, now, probe);
        debug_assert_eq!((by_word, by_interrupt), (None, None), "all are ready");
    }

    /// Next vCPU of `members`, which are ready and of one VM.
    #[inline]
    fn next_member(&mut self, hart: HartId, members: VcpuSet) -> Option<VcpuId> {
        let first = members.first()?;
        match members == VcpuSet::only(first) {
            true => Some(first),
            false => self.next_in_order(hart, members),
        }
    }

    /// VM that comes first on `hart` of those of `ready`: an eligible one before others, and the one whose next slice ends first in virtual time. A VM that
    /// has no vCPU that ran here last comes before the others only if it lags by a slice more.
    fn next_vm(&mut self, hart: HartId, ready: VcpuSet) -> Option<VmId> {
        let mean = self.renew_mean();
        let slice = self.config.slice;
        let here = ready.intersection(self.last_on[hart.index()]);
        let place = |vm: VmId| {
            let entry = self.vms[vm.index()].as_ref()?;
            if entry.vcpus.intersection(ready).is_empty() {
                return None;
            }
            let account = &entry.account;
            let key = (account.lead(mean) > 0, account.end_of_slice(mean, slice));
            let is_own = !entry.vcpus.intersection(here).is_empty();
            Some((is_own, key, account.lag(mean)))
        };
        let mut own = None;
        let mut any = None;
        for vm in self.present.iter() {
            let Some((is_own, key, lag)) = place(vm) else {
                continue;
            };
            if is_own && own.is_none_or(|(before, _, _)| key < before) {
                own = Some((key, lag, vm));
            }
            if any.is_none_or(|(most, _)| lag > most) {
                any = Some((lag, vm));
            }
        }
        let (most, lagging) = any?;
        let chosen = match own {
            Some((_, lag, vm)) if most < lag.saturating_add(self.margin()) => vm,
            _ => lagging,
        };
        let equals = || {
            let vms = self.present.iter();
            vms.filter(|&vm| place(vm) == place(chosen)).collect()
        };
        Some(choice::equal_vm(chosen, equals))
    }

    /// Lag beyond that of another VM at which a vCPU moves or preempts: about a slice. A whole one is what two equal VMs differ by at the end of each slice,
    /// so rounding would decide.
    fn margin(&self) -> i64 {
        let slice = self.config.slice.signed();
        slice - slice / 8
    }

    /// Returns true if the VM of `vcpu` is eligible and lags by a slice more than that of `run`, which has had its hart for `ran`.
    pub(crate) fn is_due_before(&mut self, vcpu: VcpuId, run: &Run, ran: Ticks) -> bool {
        // No hart has asked for the mean while one VM alone was ready.
        let mean = self.renew_mean();
        let [Some(mine), Some(theirs)] = [vcpu, run.vcpu].map(|vcpu| self.vm_of(vcpu)) else {
            return false;
        };
        let mut accounts = [mine, theirs].map(|vm| {
            let entry = self.vms[vm.index()].as_ref()?;
            let mut account = entry.account;
            account.bound(mean, self.max_lag(entry.vcpus));
            Some(account).filter(|_| !entry.dedicated)
        });
        let [Some(mine_now), Some(theirs_now)] = &mut accounts else {
            return false;
        };
        if mine == theirs {
            return false;
        }
        theirs_now.refund(run.prepaid - ran);
        let lags = [mine_now.lag(mean), theirs_now.lag(mean)];
        let margin = self.margin();
        choice::either(lags[0] >= 0 && lags[0] >= lags[1].saturating_add(margin))
    }
}
