//! What a hart does next.

use crate::choice;
use crate::decision::{Continue, Dispatch, Kicks, Leave, Left, Probe};
use crate::hart::{Doing, Run};
use crate::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::queue::Queue;
use crate::spin;
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::Phase;

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
        let stopped = self.put_away(hart, left, now);
        if !self.online.contains(hart) {
            return (stopped, self.stay_offline());
        }
        self.harts[hart.index()].doing = Doing::Searching;
        let chosen = self.choose(hart, now, probe);
        let hurried = self.end_hurry(hart);
        let place = &mut self.harts[hart.index()];
        place.avoid = None;
        place.favour = None;
        let next = match chosen {
            Some(vcpu) => self.enter(hart, vcpu, hurried == Some(vcpu), now),
            None => self.rest(hart, now),
        };
        (stopped, next)
    }

    /// There is nothing to run on `hart`.
    #[inline(never)]
    fn rest(&mut self, hart: HartId, now: Ticks) -> Dispatch {
        self.set_doing(hart, Doing::Idle);
        self.rests(hart, now);
        let watch = self.watched(hart).union(self.words_for(hart));
        Dispatch::Idle {
            watch,
            poll: self.must_test(watch),
            active: self.rules.polls,
            kicks: self.cover(),
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
            self.harts[hart.index()].rests_since = None;
            if !self.may_wait_in_place(hart) {
                return Continue::Leave(Leave::SelfWait);
            }
            self.working.insert(vcpu);
            // Whatever it was woken for, its guest looks now.
            if let Some(entry) = self.vcpu_mut(vcpu) {
                entry.woken = false;
            }
        }
        if self.next_by_hurry(hart).is_some() {
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
                hurried: run.hurried,
            }),
        );
        Continue::Stay {
            slice: end.map(|end| end - ran),
            trap_waits,
        }
    }

    /// Puts `vcpu` on `hart`, which searches.
    #[inline]
    fn enter(&mut self, hart: HartId, vcpu: VcpuId, hurried: bool, now: Ticks) -> Dispatch {
        // Only one that waited can be one of the first three, and only one that was ready one of the others.
        if self.queues.remove(vcpu) == Some(Queue::SelfWait) {
            self.self_wait_ready.remove(vcpu);
            self.for_words.remove(vcpu);
            self.deaf.remove(vcpu);
        } else {
            self.preempted_in_supervisor.remove(vcpu);
            self.preempted_closed.remove(vcpu);
            self.gave_way_in_supervisor.remove(vcpu);
        }
        self.working.insert(vcpu);
        self.harts[hart.index()].rests_since = None;
        let Some(entry) = self.vcpus[vcpu.index()].as_mut() else {
            // There is no such vCPU in any queue.
            return self.rest(hart, now);
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
            let policy = spin::policy(self.config.spin);
            policy.dispatched(&mut self.spin_scene(vcpu));
        }
        let Terms {
            contended,
            sliced,
            trap_waits,
        } = self.terms(hart, vcpu);
        let end = sliced.then(|| match contended {
            true if self
                .favoured_machine
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
                hurried,
            }),
        );
        let words = self.hand_words_over(hart);
        Dispatch::Run {
            vcpu,
            slice: end,
            trap_waits,
            kicks: self.cover().and(words),
        }
    }

    /// On what terms `vcpu` runs on `hart` while nothing changes.
    #[inline]
    fn terms(&self, hart: HartId, vcpu: VcpuId) -> Terms {
        let here = self.takes(hart);
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
                    || self.wanted
                    || !watched.is_empty()
                    || !self.words_for(hart).is_empty()),
        }
    }

    /// The self-waiting vCPUs that ran on `hart` last.
    pub(crate) fn watched(&self, hart: HartId) -> VcpuSet {
        let waiting = self.queues.members(Queue::SelfWait);
        waiting.intersection(self.last_on[hart.index()])
    }

    /// The vCPUs that wait for words and may run on `hart`: memory can be looked at from anywhere.
    pub(crate) fn words_for(&self, hart: HartId) -> VcpuSet {
        self.for_words.intersection(self.may_run[hart.index()])
    }

    /// The partners of the vCPU on `hart` that wait for words and would be next there if these had come.
    #[must_use]
    #[inline]
    pub fn waiting_partners(&self, hart: HartId) -> VcpuSet {
        match self.for_words.is_empty() {
            true => VcpuSet::EMPTY,
            false => self.partners_for_words(hart),
        }
    }

    #[inline(never)]
    fn partners_for_words(&self, hart: HartId) -> VcpuSet {
        let Some(vcpu) = self.running(hart).filter(|&vcpu| !self.has_own_hart(vcpu)) else {
            return VcpuSet::EMPTY;
        };
        let comes_here = |&partner: &VcpuId| {
            let entry = self.vcpus[partner.index()].as_ref();
            let word = entry.and_then(|entry| entry.word);
            word.is_some_and(|word| word.turn || self.is_at_its_place(hart, partner))
        };
        let waiting = self.words_for(hart).intersection(self.partners(vcpu));
        waiting.iter().filter(comes_here).collect()
    }

    /// Whether the vCPU on `hart` may wait for a partner without leaving, under a policy that waits for words.
    #[must_use]
    #[inline]
    pub fn may_wait_unseen(&self, hart: HartId) -> bool {
        self.waits_for_words()
            && self.running(hart).is_some_and(|vcpu| {
                !self.has_own_hart(vcpu) && self.partners(vcpu) != VcpuSet::only(vcpu)
            })
    }

    /// Those of `waiting` that no other hart looks for, because none is free.
    #[must_use]
    pub fn unseen(&self, waiting: VcpuSet) -> VcpuSet {
        let unseen = |&partner: &VcpuId| !self.has_free_hart(partner);
        waiting.iter().filter(unseen).collect()
    }

    /// `hart` is about to run somebody, and will look at words only when the slice ends. An idle hart that could run
    /// those that wait for words is to look at them instead.
    #[inline]
    fn hand_words_over(&mut self, hart: HartId) -> Kicks {
        if self.for_words.is_empty() {
            return Kicks::NONE;
        }
        let words = self.words_for(hart).intersection(self.watched(hart));
        let Some(first) = choice::vcpu(words) else {
            return Kicks::NONE;
        };
        let idle = self.idle.union(self.in_place);
        let Some(other) = choice::hart(idle.intersection(self.allowed(first))) else {
            return Kicks::NONE;
        };
        self.tell(other);
        Kicks(HartSet::only(other))
    }

    /// Whether one of these self-waiting vCPUs is found by tests only.
    fn must_test(&self, watched: VcpuSet) -> bool {
        let by_tests = match self.rules.tests {
            true => watched,
            false => watched.intersection(self.for_words),
        };
        !by_tests.is_empty()
    }

    /// Whether a vCPU waits for a word to change.
    pub(crate) fn waits_for_word(&self, vcpu: VcpuId) -> bool {
        self.for_words.contains(vcpu)
    }
}
