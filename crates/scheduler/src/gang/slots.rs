//! Slots of the matrix: the vCPU that a hart runs now.

use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::Probe;
use crate::dispatch::table::Scheduler;
use crate::policies::gang::NO_ROW;
use crate::policies::queues::Queue;

impl Scheduler {
    /// Returns true if `hart` is a column of the matrix.
    #[inline]
    pub(crate) fn is_column(&self, hart: HartId) -> bool {
        self.co_schedules() && self.shared.contains(hart)
    }

    /// End of the slot in time since `since`.
    pub(crate) fn slot_end(&self, since: Ticks) -> Ticks {
        self.slots.until() - since
    }

    /// Chooses the vCPU of `hart`, a column: that of the slot's row, or else an alternate. Ousterhout's alternate is the next ready one of the column.
    #[inline(never)]
    pub(crate) fn choose_by_slot(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        self.slots.advance(now, self.config.slice);
        self.end_waits(hart, now, probe);
        let ready = self.dispatchable_on(hart).iter();
        ready.min_by_key(|&vcpu| self.slots.slots_to(self.row(vcpu)))
    }

    /// Makes the waiting vCPUs ready for which `hart` finds an interrupt.
    fn end_waits(&mut self, hart: HartId, now: Ticks, probe: &mut impl Probe) {
        let files = match probe.reaches_every_file() {
            true => VcpuSet::from_bits(u64::MAX),
            false => self.last_on[hart.index()],
        };
        let mut rest = self.queues.members(Queue::SelfWait);
        if self.rules.tests {
            for vcpu in rest.intersection(files).iter() {
                // Partners may be granted the interrupt.
                if self.has_interrupt(vcpu, probe) {
                    self.make_ready(vcpu, now);
                }
            }
            rest = self.queues.members(Queue::SelfWait);
        }
        let granted = rest.intersection(self.self_wait_ready);
        for vcpu in granted.intersection(self.may_run[hart.index()]).iter() {
            self.make_ready(vcpu, now);
        }
    }

    fn row(&self, vcpu: VcpuId) -> u8 {
        self.vcpus[vcpu.index()]
            .as_ref()
            .map_or(NO_ROW, |entry| entry.row)
    }

    /// Returns true if the row of `vcpu` has the slot.
    fn has_slot(&self, vcpu: VcpuId) -> bool {
        self.row(vcpu) == self.slots.row()
    }

    /// Hart on which `vcpu`, whose row has the slot, would preempt an alternate if it were woken now.
    pub(crate) fn alternate_to_preempt(&self, vcpu: VcpuId) -> Option<HartId> {
        let hart = self
            .allowed(vcpu)
            .first()
            .filter(|&hart| self.is_column(hart))?;
        let run = self.harts[hart.index()].run()?;
        let preempts = !run.in_place
            && self.has_slot(vcpu)
            && !self.has_slot(run.vcpu)
            && self.pending_preemption(hart).is_none();
        preempts.then_some(hart)
    }

    /// Returns true if `hart` runs an alternate.
    #[cfg(test)]
    pub(crate) fn runs_alternate(&self, hart: HartId) -> bool {
        self.running(hart).is_some_and(|vcpu| !self.has_slot(vcpu))
    }

    /// Waiting vCPUs of `watched` whose interrupts are to interrupt the hypervisor: those that would preempt the alternate on their hart.
    #[inline(never)]
    pub(crate) fn waiters_in_slot(&self, watched: VcpuSet) -> VcpuSet {
        let preempts = |&vcpu: &VcpuId| self.alternate_to_preempt(vcpu).is_some();
        match self.rules.tests {
            true => watched.iter().filter(preempts).collect(),
            false => VcpuSet::EMPTY,
        }
    }
}
