//! Numbers of the scheduler that the model sets or reduces.

use crate::base::id::{HartSet, VcpuId};
use crate::base::ticks::Ticks;
use crate::dispatch::hart::Doing;
use crate::dispatch::table::Scheduler;
use crate::policies::virtual_time::VirtualTime;

impl Scheduler {
    /// Lets the next charge consume the service quantity of `vcpu`, or not.
    pub(super) fn prepare_charge(&mut self, vcpu: VcpuId, consumed: bool) {
        let fixed = self.per_vcpu_accounts;
        // Or let the slot end; otherwise another hart has begun the next one already.
        if consumed {
            self.slots.abstract_end(true);
        }
        let Some(entry) = self.vcpus[vcpu.index()].as_mut() else {
            return;
        };
        let Some(vm) = self.vms[entry.vm.index()].as_mut() else {
            return;
        };
        let service = if fixed {
            &mut entry.service
        } else {
            &mut vm.service
        };
        let credit = if consumed || service.is_out() {
            1
        } else {
            i64::MAX
        };
        service.set_credit(credit);
        self.update_out_of_service();
    }

    pub(super) fn abstract_numbers(&mut self) {
        for vm in self.vms.iter_mut().flatten() {
            vm.service.set_credit(i64::from(!vm.service.is_out()));
            vm.wakeup_vruntime = VirtualTime::START;
            vm.boost_vruntime = 0;
        }
        let over = self.slots.until() == Ticks::ZERO;
        self.slots.abstract_end(over);
        // The boost is always over, so that the VM is chosen anew at each search.
        self.vm_boost.until = Ticks::ZERO;
        self.vm_boost.lag = 0;
        self.vm_boost.tested = HartSet::EMPTY;
        self.queues = self.queues.renumbered(|vcpu| vcpu);
        let slice = self.config.slice;
        let affinity = self.config.affinity;
        for vcpu in self.vcpus.iter_mut().flatten() {
            vcpu.slice = slice;
            vcpu.used = Ticks::ZERO;
            vcpu.passed_over = vcpu.passed_over.min(affinity);
            vcpu.service.set_credit(i64::from(!vcpu.service.is_out()));
        }
        self.update_out_of_service();
        for hart in &mut self.harts {
            hart.idle_since = None;
            hart.boost_accounted = Ticks::ZERO;
            if let Doing::Running(run) = &mut hart.doing {
                run.by_preemption = false;
            }
            hart.self_waits = hart.self_waits.min(self.config.self_wait_budget);
        }
    }
}
