//! Ready queue: the next vCPU out of its three subqueues.

use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::dispatch::table::Scheduler;
use crate::policies::queues::Queue;

impl Scheduler {
    /// vCPUs that are ready, in no spin wait, and allowed on this hart.
    #[inline]
    pub(crate) fn dispatchable_on(&self, hart: HartId) -> VcpuSet {
        self.queues
            .ready()
            .without(self.spin_waits.waiting())
            .intersection(self.candidates(hart))
    }

    /// Next of `candidates`, which are dispatchable on `hart`, out of the ready queue, by the rules of paper 000 §3.2.2.
    #[inline(never)]
    pub(crate) fn next_ready(&mut self, hart: HartId, candidates: VcpuSet) -> Option<VcpuId> {
        // Each iteration but the last empties a subqueue into another, so a few are enough.
        for _ in 0..4 {
            let proper_ready = self.queues.members(Queue::ProperReady);
            if !candidates.intersection(proper_ready).is_empty()
                && let Some(vcpu) = self.next_proper_ready(hart, candidates)
            {
                return Some(vcpu);
            }
            let time_slice_end = self.queues.members(Queue::TimeSliceEnd);
            if !candidates.intersection(time_slice_end).is_empty() {
                let here = self.may_run[hart.index()];
                self.move_members(Queue::TimeSliceEnd, here, Queue::ProperReady);
                continue;
            }
            let out = candidates.intersection(self.queues.members(Queue::OutService));
            if out.is_empty() {
                return None;
            }
            self.begin_round(hart, out);
            // vCPUs whose slices have ended and that may not run here have waited longer than those that come back now. If they stayed, they could
            // wait for ever: this hart's rounds would keep their harts' rounds from ending.
            let ended = self.queues.members(Queue::TimeSliceEnd);
            self.move_members(Queue::TimeSliceEnd, ended, Queue::ProperReady);
            let in_service = self.queues.members(Queue::OutService).iter();
            let in_service = in_service
                .filter(|&vcpu| !self.is_out_of_service(vcpu))
                .collect();
            self.move_members(Queue::OutService, in_service, Queue::ProperReady);
        }
        None
    }

    /// Next of `candidates` out of the proper-ready queue: one that ran here last, unless another one was passed over too often. vCPUs of VMs out of
    /// service move to that queue.
    fn next_proper_ready(&mut self, hart: HartId, candidates: VcpuSet) -> Option<VcpuId> {
        let mut first = None;
        let mut chosen = None;
        let mut cursor = self.queues.first(Queue::ProperReady);
        while let Some(vcpu) = cursor {
            cursor = self.queues.after(vcpu);
            if !candidates.contains(vcpu) {
                continue;
            }
            if self.is_out_of_service(vcpu) {
                self.queues.push_last(Queue::OutService, vcpu);
                continue;
            }
            let Some(entry) = self.vcpus[vcpu.index()].as_ref() else {
                continue;
            };
            first = first.or(Some(vcpu));
            if entry.passed_over >= self.config.affinity || entry.last == Some(hart) {
                chosen = Some(vcpu);
                break;
            }
        }
        let chosen = chosen.or(first)?;
        let here = self.candidates(hart);
        let mut cursor = self
            .queues
            .first(Queue::ProperReady)
            .filter(|&vcpu| vcpu != chosen);
        while let Some(vcpu) = cursor {
            cursor = self.queues.after(vcpu).filter(|&vcpu| vcpu != chosen);
            if here.contains(vcpu)
                && let Some(entry) = self.vcpu_mut(vcpu)
            {
                entry.passed_over = entry.passed_over.saturating_add(1);
            }
        }
        Some(chosen)
    }

    /// Moves the members of one queue that are in `which` behind those of another, in their order.
    pub(crate) fn move_members(&mut self, from: Queue, which: VcpuSet, to: Queue) {
        let mut cursor = self.queues.first(from);
        while let Some(vcpu) = cursor {
            cursor = self.queues.after(vcpu);
            if which.contains(vcpu) {
                self.queues.push_last(to, vcpu);
            }
        }
    }
}
