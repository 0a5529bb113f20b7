//! Hypervisor's side of the scheduler: each call finds the group of harts that answers, and carries out what follows for harts.

use core::sync::atomic::Ordering;

use abi::system::SpinMethod;
use scheduler::groups::operator;
use scheduler::groups::{
    Access, Directory, Flow, Group, GroupId, LoadBits, NumberSet, balance, migration,
};
use scheduler::{
    Allocation, ConfigError, HartId, Kicks, Scheduler, Ticks, VcpuId, VcpuNumber, VmId, WaitPolicy,
};

use crate::system::{Hypervisor, now};

impl Access for Hypervisor {
    fn directory(&self) -> &Directory {
        &self.scheduler.shared.directory
    }

    fn load_bits(&self) -> &LoadBits {
        &self.scheduler.shared.load_bits
    }

    fn count(&self) -> usize {
        self.scheduler.groups.len()
    }

    #[inline]
    fn with<R>(&self, group: GroupId, what: impl FnOnce(&mut Group) -> R) -> R {
        let mut held = self.scheduler.lock(group);
        let result = what(&mut held);
        let flow = self.scheduler.publish(&held);
        drop(held);
        self.follow(flow);
        result
    }

    fn with_two<R>(
        &self,
        one: GroupId,
        other: GroupId,
        what: impl FnOnce(&mut Group, &mut Group) -> R,
    ) -> R {
        self.scheduler.with_both(one, other, what)
    }
}

impl Hypervisor {
    /// Passes the group of a hart to `what`.
    #[inline]
    pub fn with_hart<R>(&self, hart: HartId, what: impl FnOnce(&mut Group) -> R) -> R {
        self.with(self.scheduler.group_of(hart), what)
    }

    /// Reports an event of a vCPU to the scheduler, and interrupts the harts that the scheduler names.
    pub fn notify_scheduler(
        &self,
        vcpu: VcpuNumber,
        what: impl FnOnce(&mut Scheduler, VcpuId) -> Kicks,
    ) {
        let kicks = self.with_vcpu(vcpu, |group, vcpu| what(group.scheduler_mut(), vcpu));
        self.kick(kicks.unwrap_or_default());
    }

    /// Migrates vCPUs from a surplus group to one with an idle hart, if the two were found.
    #[inline]
    pub fn follow(&self, flow: Option<Flow>) {
        if let Some(flow) = flow {
            self.follow_one(flow);
        }
    }

    #[cold]
    #[inline(never)]
    fn follow_one(&self, flow: Flow) {
        let kicks = migration::follow(self, flow, now());
        self.kick(kicks);
    }

    /// Migrates a runnable vCPU to `hart`'s group.
    #[inline]
    pub fn pull(&self, vcpu: VcpuNumber, hart: HartId) {
        if self.scheduler.several {
            let to = self.scheduler.group_of(hart);
            let kicks = migration::pull(self, vcpu, to, now());
            self.kick(kicks);
        }
    }

    /// Migrates vCPUs that no hart of the group of `hart` may run any more.
    #[cold]
    #[inline(never)]
    pub fn migrate_displaced(&self, hart: HartId) {
        let group = self.scheduler.group_of(hart);
        let kicks = migration::migrate_displaced(self, group, now());
        self.kick(kicks);
    }

    /// Balances shares between groups, once in a service round.
    #[inline]
    pub fn balance(&self, now: Ticks) {
        if !self.scheduler.several {
            return;
        }
        let due = self.scheduler.shared.next_balance.load(Ordering::Relaxed);
        if now.get() >= due {
            self.balance_at(now, due);
        }
    }

    #[cold]
    #[inline(never)]
    fn balance_at(&self, now: Ticks, due: u64) {
        let config = self.scheduler.config();
        let round = balance::interval(&config).get();
        let next = &self.scheduler.shared.next_balance;
        let claimed = next.compare_exchange(
            due,
            now.get().saturating_add(round),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if claimed.is_ok() {
            let kicks = {
                let mut ledger = self.scheduler.shared.ledger.lock();
                balance::balance(&mut ledger, self, config.slice, now)
            };
            self.kick(kicks);
        }
    }

    /// Wakes each of `vcpus`.
    pub fn wake_all(&self, vcpus: &NumberSet) {
        let kicks = scheduler::groups::wake_all(self, vcpus, now());
        self.kick(kicks);
    }

    /// Changes a VM's allocation.
    ///
    /// # Errors
    /// The allocation is not available; nothing has changed then.
    pub fn set_allocation(&self, vm: VmId, to: Allocation) -> Result<(), ConfigError> {
        let kicks = {
            let mut ledger = self.scheduler.shared.ledger.lock();
            operator::set_allocation(&mut ledger, self, (vm, to), now())?
        };
        self.kick(kicks);
        Ok(())
    }

    /// Changes a VM's share.
    ///
    /// # Errors
    /// The share is out of its range.
    pub fn set_share(&self, vm: VmId, share: u32) -> Result<(), ConfigError> {
        let mut ledger = self.scheduler.shared.ledger.lock();
        operator::set_share(&mut ledger, self, vm, share)
    }

    /// Changes the method for spinning vCPUs.
    pub fn set_spin(&self, method: SpinMethod) {
        self.note_spin(method);
        let policy = super::policy::spin_policy(method);
        self.kick(operator::set_spin(self, policy, now()));
    }

    /// Changes the wait policy.
    pub fn set_wait(&self, policy: WaitPolicy) {
        self.kick(operator::set_wait(self, policy));
    }
}
