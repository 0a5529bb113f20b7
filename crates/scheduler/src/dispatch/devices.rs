//! Work for a VM's devices: whose time it takes, and which vCPU it waits for.

use crate::base::id::VcpuId;
use crate::base::ticks::Ticks;
use crate::decision::Kicks;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;

impl Scheduler {
    /// Charges the VM of `vcpu` with time that harts worked for its devices while they had vCPUs of others.
    #[cold]
    #[inline(never)]
    pub(crate) fn charge_by_others(&mut self, vcpu: VcpuId, time: Ticks) {
        self.charge(vcpu, time);
        if let Some(vm) = self.vm_mut(vcpu) {
            vm.account(time);
            let more = vm.inverse_weight.vruntime(time);
            vm.boost_vruntime = vm.boost_vruntime.wrapping_add(more);
        }
    }

    /// Notes that a device of the VM of `vcpu` has work that waits until `vcpu` runs. Wakes a waiting vCPU if a hart is free for it, if it preempts
    /// another one, or if no hart tests for what it waits; else the test by its hart finds the work. `None` if the vCPU is stopped: another one has to
    /// do the work.
    pub fn wake_for_devices(&mut self, vcpu: VcpuId, now: Ticks) -> Option<Kicks> {
        let phase = self.vcpus[vcpu.index()].as_ref()?.phase;
        match phase {
            Phase::Stopped => None,
            // The work is done before the vCPU enters its guest, or found when it waits.
            Phase::Running(_) if self.rules.tests => Some(Kicks::NONE),
            Phase::SelfWait if self.rules.tests && !self.gets_hart(vcpu, now) => Some(Kicks::NONE),
            _ => Some(self.wake(vcpu, now)),
        }
    }

    /// True if a hart is free for `vcpu`, or `vcpu` preempts another one once it is woken.
    fn gets_hart(&mut self, vcpu: VcpuId, now: Ticks) -> bool {
        let free = self.searching.union(self.idle).union(self.in_place);
        let is_free = !free.intersection(self.may_dispatch(vcpu)).is_empty();
        is_free || self.preemption_target(vcpu, now).is_some()
    }
}
