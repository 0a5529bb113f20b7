//! Next action of a hart.

use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::{Continue, Dispatch, Kicks, Leave, Left, Probe};
use crate::dispatch::hart::{Doing, Run};
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;
use crate::policies::queues::Queue;

/// Terms on which a vCPU may run.
struct Terms {
    /// Another vCPU wants the hart.
    contended: bool,
    /// The hart must ask again after a slice.
    sliced: bool,
    trap_waits: bool,
}

impl Scheduler {
    /// Chooses the next action of `hart`, which runs no vCPU. `probe` answers for the vCPUs that wait.
    ///
    /// A vCPU that the scheduler believes to be on the hart is taken to have been preempted without having run.
    pub fn dispatch(&mut self, hart: HartId, now: Ticks, probe: &mut impl Probe) -> Dispatch {
        let left = Left::new(Leave::Preempted, Ticks::ZERO);
        self.leave_and_dispatch(hart, &left, now, probe).1
    }

    /// [`Scheduler::leave`] and [`Scheduler::dispatch`] in one, for a hart that does nothing in between. The answer is also true if the vCPU that has
    /// left is stopped.
    pub fn leave_and_dispatch(
        &mut self,
        hart: HartId,
        left: &Left,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> (bool, Dispatch) {
        self.replace(hart, (left, left.holder), now, probe)
    }

    /// [`Scheduler::leave_and_dispatch`] with the holder beside the report, which may name it otherwise.
    #[inline]
    pub(crate) fn replace<V>(
        &mut self,
        hart: HartId,
        (left, holder): (&Left<V>, Option<VcpuId>),
        now: Ticks,
        probe: &mut impl Probe,
    ) -> (bool, Dispatch) {
        let stopped = self.deschedule(hart, (left, holder), now);
        if !self.online.contains(hart) {
            return (stopped, self.stay_offline());
        }
        self.harts[hart.index()].doing = Doing::Searching;
        let chosen = self.choose(hart, now, probe);
        let by_preemption = self.end_preemption(hart);
        let place = &mut self.harts[hart.index()];
        place.skip = None;
        place.next = None;
        let next = match chosen {
            Some(vcpu) => self.enter(hart, vcpu, by_preemption == Some(vcpu), now),
            None => self.become_idle(hart, now),
        };
        (stopped, next)
    }

    /// Makes `hart` idle: there is no vCPU to run.
    #[inline(never)]
    fn become_idle(&mut self, hart: HartId, now: Ticks) -> Dispatch {
        self.set_doing(hart, Doing::Idle);
        self.note_idle(hart, now);
        let watch = self.watched(hart).union(self.word_waiters_on(hart));
        Dispatch::Idle {
            watch,
            poll: self.must_test(watch),
            active: self.rules.polls,
            kicks: self.assign_harts(),
        }
    }

    /// Answers a hart that the scheduler does not know.
    #[cold]
    fn stay_offline(&mut self) -> Dispatch {
        Dispatch::Idle {
            watch: VcpuSet::EMPTY,
            poll: false,
            active: false,
            kicks: Kicks::NONE,
        }
    }

    /// Decides whether the vCPU on `hart`, which was interrupted by a kick or its slice timer after `ran` since its dispatch, may continue, and on
    /// which terms.
    pub fn reconsider(&mut self, hart: HartId, ran: Ticks) -> Continue {
        let Some(run) = self.harts[hart.index()].run() else {
            return Continue::Leave(Leave::Preempted);
        };
        let vcpu = run.vcpu;
        match &self.vcpus[vcpu.index()] {
            None => return Continue::Leave(Leave::Stopped),
            Some(entry) if entry.stopping => return Continue::Leave(Leave::Stopped),
            Some(entry) if entry.paused || !self.may_run[hart.index()].contains(vcpu) => {
                return Continue::Leave(Leave::Preempted);
            }
            Some(_) => {}
        }
        if run.in_place {
            self.harts[hart.index()].idle_since = None;
            if !self.may_wait_in_place(hart) {
                return Continue::Leave(Leave::SelfWait);
            }
            self.executing.insert(vcpu);
            // Its guest tests now for what it was woken for.
            if let Some(entry) = self.vcpu_mut(vcpu) {
                entry.woken = false;
            }
        }
        if self.pending_preemption(hart).is_some() {
            return Continue::Leave(Leave::Preempted);
        }
        let terms = self.terms(hart, vcpu);
        let end = terms.sliced.then(|| {
            let slice = self.config.slice;
            // Without an end, slices have followed each other unnoticed.
            run.end.unwrap_or_else(|| match self.is_column(hart) {
                true => self.slot_end(run.since),
                false => ran + slice - Ticks::new(ran.get() % slice.get().max(1)),
            })
        });
        if end.is_some_and(|end| ran >= end) {
            return Continue::Leave(Leave::SliceEnd);
        }
        let charged_from = match (terms.contended, run.charged_from) {
            (true, from) => Some(from.unwrap_or(ran)),
            (false, Some(from)) => {
                self.charge(vcpu, ran - from);
                None
            }
            (false, None) => None,
        };
        let trap_waits = terms.trap_waits;
        self.set_doing(
            hart,
            Doing::Running(Run {
                vcpu,
                since: run.since,
                end,
                trap_waits,
                charged_from,
                in_place: false,
                by_preemption: run.by_preemption,
            }),
        );
        Continue::Stay {
            slice: end.map(|end| end - ran),
            trap_waits,
        }
    }

    /// Puts `vcpu` on `hart`, which searches.
    #[inline]
    fn enter(&mut self, hart: HartId, vcpu: VcpuId, by_preemption: bool, now: Ticks) -> Dispatch {
        // Only a waiting vCPU can be in the first three sets, and only a ready one in the others.
        if self.queues.remove(vcpu) == Some(Queue::SelfWait) {
            self.self_wait_ready.remove(vcpu);
            self.word_waiters.remove(vcpu);
            self.uninterruptible.remove(vcpu);
        } else {
            self.preempted_in_supervisor.remove(vcpu);
            self.preempted_interrupts_off.remove(vcpu);
            self.yielded_in_supervisor.remove(vcpu);
        }
        self.executing.insert(vcpu);
        self.harts[hart.index()].idle_since = None;
        let Some(entry) = self.vcpus[vcpu.index()].as_mut() else {
            // There is no such vCPU in any queue.
            return self.become_idle(hart, now);
        };
        let (left, vm) = (entry.slice, entry.vm);
        entry.phase = Phase::Running(hart);
        entry.word = None;
        entry.woken = false;
        entry.passed_over = 0;
        let former = entry.last.replace(hart);
        if former != Some(hart) {
            if let Some(former) = former {
                self.last_on[former.index()].remove(vcpu);
            }
            self.last_on[hart.index()].insert(vcpu);
        }
        // GSPW is not 0: a partner is in a spin wait.
        let spin_waiting = self.spin_waits.waiting();
        if !spin_waiting.is_empty() && !spin_waiting.intersection(self.partners(vcpu)).is_empty() {
            let policy = self.config.spin.rule();
            policy.dispatched(&mut self.spin_scene(vcpu));
        }
        let Terms {
            contended,
            sliced,
            trap_waits,
        } = self.terms(hart, vcpu);
        let end = sliced.then(|| match contended {
            _ if self.is_column(hart) => self.slot_end(now),
            true if self.vm_boost.vm == Some(vm) => left,
            true => left.min(self.quantity_left(vcpu)),
            false => left,
        });
        self.set_doing(
            hart,
            Doing::Running(Run {
                vcpu,
                since: now,
                end,
                trap_waits,
                charged_from: contended.then_some(Ticks::ZERO),
                in_place: false,
                by_preemption,
            }),
        );
        let words = self.delegate_words(hart);
        Dispatch::Run {
            vcpu,
            slice: end,
            trap_waits,
            kicks: self.assign_harts().and(words),
        }
    }

    /// Terms on which `vcpu` runs on `hart` while nothing changes.
    #[inline]
    fn terms(&self, hart: HartId, vcpu: VcpuId) -> Terms {
        let here = self.candidates(hart);
        let dedicated = self.has_own_hart(vcpu);
        let ready = self
            .queues
            .ready()
            .union(self.self_wait_ready)
            .intersection(here);
        let contended = !ready.is_empty();
        let watched = self.watched(hart);
        let strict = !self.config.relaxes && !dedicated;
        Terms {
            contended,
            sliced: strict || contended || self.must_test(watched),
            // A vCPU that spins here makes room for one whose word has changed.
            trap_waits: !dedicated
                && (strict
                    || contended
                    || self.others_have_surplus
                    || !watched.is_empty()
                    || !self.word_waiters_on(hart).is_empty()),
        }
    }

    /// Self-waiting vCPUs that ran on `hart` last.
    pub(crate) fn watched(&self, hart: HartId) -> VcpuSet {
        let waiting = self.queues.members(Queue::SelfWait);
        waiting.intersection(self.last_on[hart.index()])
    }

    /// Returns true if one of these self-waiting vCPUs is found by tests only.
    fn must_test(&self, watched: VcpuSet) -> bool {
        let by_tests = match self.rules.tests {
            true => watched,
            false => watched.intersection(self.word_waiters),
        };
        !by_tests.is_empty()
    }
}
