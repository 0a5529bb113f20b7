//! Spins of vCPUs, as the spin policy sees them.

use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::dispatch::table::Scheduler;
use crate::policies::spin::exit::{Keep, SpinExit};
use crate::policies::spin::rule::Scene;

impl Scheduler {
    /// Decides whether the vCPU on `hart`, which spins, keeps it. A vCPU that does not must leave.
    #[must_use]
    pub fn keeps_hart(&mut self, hart: HartId, exit: SpinExit) -> Keep {
        let Some(vcpu) = self.running(hart) else {
            return Keep::No;
        };
        if self.has_own_hart(vcpu) {
            return Keep::Yes;
        }
        let rule = self.config.spin.rule();
        let holder_runs = exit
            .holder
            .is_some_and(|holder| self.running_on(holder).is_some());
        let mut scene = self.spin_scene(vcpu);
        scene.holder_runs = holder_runs;
        rule.keep(&mut scene, exit)
    }

    /// Describes `vcpu` among its partners.
    #[inline]
    pub(crate) fn spin_scene(&mut self, vcpu: VcpuId) -> Scene<'_> {
        let partners = self.partners(vcpu).without(VcpuSet::only(vcpu));
        let last_yielded_to = self.vm(vcpu).and_then(|vm| vm.last_yielded_to);
        Scene {
            vcpu,
            partners,
            executing: self.executing.intersection(partners),
            preempted_in_supervisor: self.preempted_in_supervisor.intersection(partners),
            preempted_interrupts_off: self.preempted_interrupts_off.intersection(partners),
            yielded_in_supervisor: self.yielded_in_supervisor.intersection(partners),
            holder: None,
            holder_runs: false,
            queues: &self.queues,
            waits: &mut self.spin_waits,
            last_yielded_to,
            slice: self.config.slice,
        }
    }
}
