//! Kicks: no vCPU stays ready while a hart could run it.

use crate::base::choice;
use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::decision::Kicks;
use crate::dispatch::hart::Doing;
use crate::dispatch::table::Scheduler;

impl Scheduler {
    /// vCPUs that a hart may dispatch without a test: ready and in no spin wait, or self-waiting with a known interrupt.
    pub(crate) fn dispatchable(&self) -> VcpuSet {
        self.queues
            .ready()
            .without(self.spin_waits.waiting())
            .union(self.self_wait_ready)
    }

    /// Finds a hart for each dispatchable vCPU. Searching harts will call `dispatch` anyway. Then one idle hart is woken for each vCPU, also a hart
    /// whose vCPU waits in place, the vCPU's last hart before others. If there is none, harts that run on relaxed terms are kicked to tighten them.
    ///
    /// Every event ends with this, so no caller has to remember which of its effects makes work.
    #[inline]
    pub(crate) fn assign_harts(&mut self) -> Kicks {
        if (self.idle.union(self.relaxed).union(self.in_place)).is_empty() {
            return Kicks::NONE;
        }
        let waiting = self.dispatchable();
        if waiting.is_empty() {
            return Kicks::NONE;
        }
        self.assign_harts_to(waiting)
    }

    #[inline(never)]
    fn assign_harts_to(&mut self, mut waiting: VcpuSet) -> Kicks {
        let mut searching = self.searching;
        // A vCPU's last hart is left to it if that hart will search.
        let mut rest = waiting;
        while let Some(vcpu) = choice::vcpu(rest) {
            rest.remove(vcpu);
            let last = self
                .last_hart(vcpu)
                .filter(|&last| self.may_dispatch(vcpu).contains(last));
            if let Some(hart) = last.filter(|&last| searching.contains(last)) {
                searching.remove(hart);
                waiting.remove(vcpu);
            }
        }
        let mut kicks = HartSet::EMPTY;
        while let Some(vcpu) = choice::vcpu(waiting) {
            waiting.remove(vcpu);
            let allowed = self.may_dispatch(vcpu);
            if let Some(hart) = choice::hart(searching.intersection(allowed)) {
                searching.remove(hart);
                continue;
            }
            let idle = self.idle.union(self.in_place).intersection(allowed);
            let woken = match self.nearest(vcpu, idle) {
                Some(hart) if self.rules.wakes_every_hart => {
                    searching = searching.union(idle.without(HartSet::only(hart)));
                    idle
                }
                Some(hart) => HartSet::only(hart),
                None => self.relaxed.intersection(allowed),
            };
            for hart in woken.iter() {
                self.note_kick(hart);
            }
            kicks = kicks.union(woken);
        }
        Kicks(kicks)
    }

    /// Returns true if a hart that may run `vcpu` is idle.
    pub(crate) fn has_free_hart(&self, vcpu: VcpuId) -> bool {
        let free = self.idle.union(self.in_place);
        !free.intersection(self.may_dispatch(vcpu)).is_empty()
    }

    /// Notes that `hart` is kicked: it will ask, and need not be kicked again.
    pub(crate) fn note_kick(&mut self, hart: HartId) {
        if self.idle.contains(hart) {
            self.set_doing(hart, Doing::Searching);
        } else if self.in_place.contains(hart) {
            self.in_place.remove(hart);
            self.searching.insert(hart);
        } else {
            self.relaxed.remove(hart);
        }
    }

    /// Last hart of `vcpu` if it is in `among`, or else any of these.
    fn nearest(&self, vcpu: VcpuId, among: HartSet) -> Option<HartId> {
        self.last_hart(vcpu)
            .filter(|&last| among.contains(last))
            .or_else(|| choice::hart(among))
    }
}
