//! Accounts: who pays what, and the mean.

use crate::base::id::{HartId, VcpuId, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::decision::Left;
use crate::dispatch::hart::Run;
use crate::dispatch::table::Scheduler;
use crate::policies::account::Account;
use crate::policies::spin::SpinPolicy;

/// Bound on the lag of a VM, in slices for each hart that it can use.
const MAX_LAG_SLICES: u64 = 2;

impl Scheduler {
    /// Returns true if accounts of virtual time say which vCPU is next.
    #[inline]
    pub(crate) const fn by_account(&self) -> bool {
        cfg!(feature = "papers") && matches!(self.config.spin, SpinPolicy::VirtualTime)
    }

    pub(crate) fn account_mut(&mut self, vcpu: VcpuId) -> Option<&mut Account> {
        self.vm_mut(vcpu).map(|vm| &mut vm.account)
    }

    /// Charges a stay up to `until` since its dispatch, and gives back what was paid for the time after it.
    #[inline]
    pub(crate) fn settle(&mut self, run: &Run, until: Ticks) {
        if let Some(from) = run.charged_from {
            self.charge(run.vcpu, until - from);
        }
        if self.by_account()
            && run.prepaid != Ticks::ZERO
            && let Some(account) = self.account_mut(run.vcpu)
        {
            account.refund(run.prepaid);
        }
    }

    /// Lets the VM of `vcpu` pay for a stay before it begins, so that other harts know of it. Returns what was paid.
    #[inline]
    pub(crate) fn prepay(&mut self, vcpu: VcpuId, stay: Option<Ticks>) -> Ticks {
        let Some(stay) = stay.filter(|_| self.by_account()) else {
            return Ticks::ZERO;
        };
        match self.account_mut(vcpu) {
            Some(account) => account.charge(stay),
            None => return Ticks::ZERO,
        }
        stay
    }

    /// The VM that preempts pays for both context switches, and the VM of `run`, which was preempted, for none.
    pub(crate) fn spare_preempted(&mut self, hart: HartId, run: &Run, left: &Left) {
        if self.by_account()
            && self.preempted_harts.contains(hart)
            && let Some(account) = self.account_mut(run.vcpu)
        {
            account.refund(left.round_trip);
        }
    }

    /// Bound on the lag of a VM with these vCPUs.
    pub(crate) fn max_lag(&self, vcpus: VcpuSet) -> Ticks {
        let harts = vcpus.count().min(self.shared.count());
        Ticks::new(self.config.slice.get() * MAX_LAG_SLICES * u64::from(harts))
    }

    /// Mean virtual time of the VMs that want harts, weighted by their shares. Bounds their lags.
    #[inline(never)]
    pub(crate) fn renew_mean(&mut self) -> u64 {
        let wants = self.queues.ready().union(self.executing);
        let before = self.mean_time;
        let (mut sum, mut weights) = (0_i64, 0_i64);
        for vm in self.present.iter() {
            let Some(entry) = self.vms[vm.index()].as_ref() else {
                continue;
            };
            if entry.dedicated || entry.vcpus.intersection(wants).is_empty() {
                continue;
            }
            let most = self.max_lag(entry.vcpus);
            let Some(entry) = self.vms[vm.index()].as_mut() else {
                continue;
            };
            entry.account.bound(before, most);
            let weight = entry.account.weight().cast_signed();
            sum = sum.saturating_add(entry.account.lead(before).saturating_mul(weight));
            weights += weight;
        }
        self.mean_time = before.wrapping_add((sum / weights.max(1)).cast_unsigned());
        self.mean_time
    }

    /// Lets the account of a VM that arrives neither lag nor lead.
    pub(crate) fn begin_account(&mut self, vm: VmId) {
        let mean = self.mean_time;
        if let Some(vm) = self.vms[vm.index()].as_mut() {
            vm.account.begin(mean);
        }
    }
}
