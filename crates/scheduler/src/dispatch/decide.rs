//! What a hart does next.

use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::{Continue, Dispatch, Kicks, Leave, Left, Probe};
use crate::dispatch::hart::{Doing, Run};
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;
use crate::policies::queues::Queue;

/// On what terms a vCPU may run.
struct Terms {
    /// Somebody else wants the hart.
    contended: bool,
    /// The hart must ask again after a slice.
    sliced: bool,
    trap_waits: bool,
}

impl Scheduler {
    /// Chooses what `hart`, which runs no vCPU, does next. `probe` answers for the vCPUs that wait.
    ///
    /// If the scheduler believes that a vCPU is on the hart, it is taken to have been preempted
    /// without having run.
    pub fn dispatch(&mut self, hart: HartId, now: Ticks, probe: &mut impl Probe) -> Dispatch {
        let left = Left::new(Leave::Preempted, Ticks::ZERO);
        self.leave_and_dispatch(hart, &left, now, probe).1
    }

    /// [`Scheduler::leave`] and [`Scheduler::dispatch`] in one, for a hart that does nothing in between. Also says whether the
    /// vCPU that has left is stopped.
    pub fn leave_and_dispatch(
        &mut self,
        hart: HartId,
        left: &Left,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> (bool, Dispatch) {
        let stopped = self.deschedule(hart, left, now);
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

    /// There is nothing to run on `hart`.
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

    /// A hart that the scheduler does not know has nothing to do.
    #[cold]
    fn stay_offline(&mut self) -> Dispatch {
        Dispatch::Idle {
            watch: VcpuSet::EMPTY,
            poll: false,
            active: false,
            kicks: Kicks::NONE,
        }
    }

    /// For a hart whose vCPU has been interrupted by a kick or by its slice timer after running for
    /// `ran` since its dispatch: whether it may go on, and on what terms.
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
            // Whatever it was woken for, its guest looks now.
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
            // Where there was no end, slices have followed each other without notice.
            run.end
                .unwrap_or(ran + slice - Ticks::new(ran.get() % slice.get().max(1)))
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
        // Only one that waited can be one of the first three, and only one that was ready one of the others.
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
        let left = entry.slice;
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
        // Only if GSPW is not 0: somebody of the virtual machine is in a spin wait.
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
            true if self
                .vm_boost
                .vm
                .is_some_and(|vm| self.vm_of(vcpu) == Some(vm)) =>
            {
                left
            }
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

    /// On what terms `vcpu` runs on `hart` while nothing changes.
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
            // Who spins here is to make room for whoever a word has come for.
            trap_waits: !dedicated
                && (strict
                    || contended
                    || self.others_have_surplus
                    || !watched.is_empty()
                    || !self.word_waiters_on(hart).is_empty()),
        }
    }

    /// The self-waiting vCPUs that ran on `hart` last.
    pub(crate) fn watched(&self, hart: HartId) -> VcpuSet {
        let waiting = self.queues.members(Queue::SelfWait);
        waiting.intersection(self.last_on[hart.index()])
    }

    /// Whether one of these self-waiting vCPUs is found by tests only.
    fn must_test(&self, watched: VcpuSet) -> bool {
        let by_tests = match self.rules.tests {
            true => watched,
            false => watched.intersection(self.word_waiters),
        };
        !by_tests.is_empty()
    }
}
