//! Which harts must be interrupted so that no work waits while a hart could do it.

use crate::base::choice;
use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::decision::Kicks;
use crate::dispatch::hart::Doing;
use crate::dispatch::table::Scheduler;

impl Scheduler {
    /// The vCPUs that a hart may dispatch without any test: ready and not in a spin wait, or
    /// self-waiting with a known reason to run.
    pub(crate) fn dispatchable(&self) -> VcpuSet {
        self.queues
            .ready()
            .without(self.spin_waits.waiting())
            .union(self.self_wait_ready)
    }

    /// Finds a hart for each dispatchable vCPU. Harts that search will call `dispatch` anyway; then
    /// idle harts are woken, and those whose vCPU waits in place, the one where the vCPU ran last before others, each
    /// for one vCPU; where there is none, the harts that run on relaxed terms are told that these have changed.
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
        // Nobody is to take the hart that another one ran on last, if that one will find it free.
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

    /// Whether a hart that `vcpu` may run on has nothing to do.
    pub(crate) fn has_free_hart(&self, vcpu: VcpuId) -> bool {
        let free = self.idle.union(self.in_place);
        !free.intersection(self.may_dispatch(vcpu)).is_empty()
    }

    /// Notes that `hart` is kicked: it will ask, and need not be told again.
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

    /// The hart of `among` that `vcpu` ran on last, or else any.
    fn nearest(&self, vcpu: VcpuId, among: HartSet) -> Option<HartId> {
        self.last_hart(vcpu)
            .filter(|&last| among.contains(last))
            .or_else(|| choice::hart(among))
    }
}
