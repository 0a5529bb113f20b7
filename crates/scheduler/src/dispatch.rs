//! What a hart does next.

use crate::choice;
use crate::decision::{Continue, Dispatch, Kicks, Leave, Left, Probe};
use crate::hart::{Doing, Run};
use crate::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::queue::Queue;
use crate::spin;
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::{Phase, Word};
use crate::wait;

/// Of so many self-waiting vCPUs the first is found by comparing when they came; of more, by going through the queue.
const FEW: usize = 8;

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
    pub fn dispatch(&mut self, hart: HartId, now: Ticks, probe: &mut dyn Probe) -> Dispatch {
        let runs = matches!(self.harts[hart.index()].doing, Doing::Running(_));
        let kicks = match runs {
            true => self.leave(hart, Left::new(Leave::Preempted, Ticks::ZERO), now),
            false => Kicks::NONE,
        };
        if !self.online.contains(hart) {
            return Dispatch::Idle {
                watch: VcpuSet::EMPTY,
                poll: false,
                active: false,
                kicks,
            };
        }
        if self.harts[hart.index()].doing != Doing::Searching {
            self.set_doing(hart, Doing::Searching);
        }
        let chosen = self.choose(hart, now, probe);
        let place = &mut self.harts[hart.index()];
        place.avoid = None;
        place.favour = None;
        if let Some(vcpu) = chosen {
            return self.enter(hart, vcpu, now);
        }
        self.set_doing(hart, Doing::Idle);
        self.rests(hart, now);
        let watch = self.watched(hart).union(self.words_for(hart));
        let poll = self.must_test(watch);
        Dispatch::Idle {
            watch,
            poll,
            active: wait::rules(self.config.wait).polls,
            kicks: kicks.and(self.cover()),
        }
    }

    /// For a hart whose vCPU has been interrupted by a kick or by its slice timer after running for
    /// `ran` since its dispatch: whether it may go on, and on what terms.
    pub fn reconsider(&mut self, hart: HartId, ran: Ticks) -> Continue {
        let Some(run) = self.harts[hart.index()].run() else {
            return Continue::Leave(Leave::Preempted);
        };
        let vcpu = run.vcpu;
        match self.vcpus[vcpu.index()] {
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
            // Whatever it was woken for, its guest looks now.
            if let Some(entry) = self.vcpu_mut(vcpu) {
                entry.woken = false;
            }
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
                end,
                trap_waits,
                charged_from,
                in_place: false,
            }),
        );
        Continue::Stay {
            slice: end.map(|end| end - ran),
            trap_waits,
        }
    }

    fn choose(&mut self, hart: HartId, now: Ticks, probe: &mut dyn Probe) -> Option<VcpuId> {
        if let Some(vcpu) = self.take_self_waiting(hart, now, probe) {
            let place = &mut self.harts[hart.index()];
            place.self_waits = place.self_waits.saturating_add(1);
            return Some(vcpu);
        }
        self.harts[hart.index()].self_waits = 0;
        let favour = self.harts[hart.index()].favour.filter(|&vcpu| {
            self.dispatchable_on(hart).contains(vcpu) && !self.is_out_of_service(vcpu)
        });
        let avoid = self.harts[hart.index()].avoid;
        favour
            .or_else(|| self.next_ready(hart, avoid))
            .or_else(|| self.next_ready(hart, None))
    }

    /// Ready, not in a spin wait, and allowed on this hart.
    fn dispatchable_on(&self, hart: HartId) -> VcpuSet {
        let here = self.takes(hart);
        self.queues
            .ready()
            .without(self.spin_waits.waiting())
            .intersection(here)
    }

    /// The first self-waiting vCPU that has a reason to run and may run here (paper 002 §3.4): whose turn it is at a lock
    /// goes before whoever has an interrupt, because others wait for it in their turn.
    ///
    /// Others with a reason are not left behind: where their virtual machine is out of service, they
    /// may not run here, or this hart has spent its budget while others are ready, they become ready.
    fn take_self_waiting(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut dyn Probe,
    ) -> Option<VcpuId> {
        let spent = self.harts[hart.index()].self_waits >= self.config.self_wait_budget
            && !self.dispatchable_on(hart).is_empty();
        let by_word = match self.for_words.is_empty() {
            true => None,
            false => self.take_by_word(hart, spent, now, probe),
        };
        by_word.or_else(|| self.take_by_interrupt(hart, spent, now, probe))
    }

    /// Looks at the words that vCPUs wait for, and takes the first whose time has come and who is at its place here.
    ///
    /// Others do not wait for who has no turn, and to move it costs more than it gains: where it is not at its place, it
    /// becomes ready before the others, so that the hart on which it ran last prefers it.
    #[inline(never)]
    fn take_by_word(
        &mut self,
        hart: HartId,
        spent: bool,
        now: Ticks,
        probe: &mut dyn Probe,
    ) -> Option<VcpuId> {
        let mut rest = self.for_words;
        let mut cursor = self.queues.first(Queue::SelfWait);
        loop {
            // As below, a few are not looked for in the queue.
            let vcpu = match self.queues.first_to_wait(rest)? {
                (first, count) if count <= FEW => first,
                _ => {
                    let vcpu = cursor?;
                    cursor = self.queues.after(vcpu);
                    vcpu
                }
            };
            rest.remove(vcpu);
            let Some((word, deaf)) = self.waits_for(vcpu) else {
                continue;
            };
            let is_over = now >= word.until || probe.changed(vcpu);
            let hears = deaf && now >= word.hears_from;
            if !(is_over || hears && self.hears_again(vcpu)) {
                continue;
            }
            if spent || !self.may_take(hart, vcpu) {
                self.make_ready(vcpu, now);
            } else if word.turn || self.is_at_its_place(hart, vcpu) {
                return Some(vcpu);
            } else {
                self.make_ready_early(vcpu, now);
            }
        }
    }

    /// What `vcpu` waits for in memory, and whether it is not to be interrupted.
    fn waits_for(&self, vcpu: VcpuId) -> Option<(Word, bool)> {
        let entry = self.vcpus[vcpu.index()].as_ref()?;
        Some((entry.word?, entry.deaf))
    }

    /// The time in which `vcpu` is not to be interrupted is over. Whether it was woken in it.
    fn hears_again(&mut self, vcpu: VcpuId) -> bool {
        self.vcpu_mut(vcpu).is_some_and(|entry| {
            entry.deaf = false;
            core::mem::take(&mut entry.woken)
        })
    }

    /// Whether `vcpu` ran last on `hart`, or where a partner runs now: who waits for each other had better run at the same
    /// time than one after the other.
    fn is_at_its_place(&self, hart: HartId, vcpu: VcpuId) -> bool {
        let Some(last) = self.last_hart(vcpu) else {
            return true;
        };
        let there = self.running(last);
        last == hart || there.is_some_and(|other| self.vm_of(other) == self.vm_of(vcpu))
    }

    fn take_by_interrupt(
        &mut self,
        hart: HartId,
        spent: bool,
        now: Ticks,
        probe: &mut dyn Probe,
    ) -> Option<VcpuId> {
        let wait = wait::rules(self.config.wait);
        // Files of other harts cannot be read, so there is no need to ask about their vCPUs.
        let candidates = match wait.tests {
            false => self.self_wait_ready,
            true if probe.reaches_every_file() => VcpuSet::from_bits(u64::MAX),
            true => self.last_on[hart.index()].union(self.self_wait_ready),
        };
        let candidates = self
            .queues
            .members(Queue::SelfWait)
            .intersection(candidates);
        if candidates.is_empty() {
            return None;
        }
        // Where none can be granted a reason meanwhile, only these few have to be asked.
        if !wait.grants_all && self.self_wait_ready.is_empty() {
            let mut rest = candidates;
            while let Some((vcpu, count)) = self.queues.first_to_wait(rest) {
                if count > FEW {
                    return self.go_through(hart, spent, candidates, now, probe);
                }
                rest.remove(vcpu);
                if !self.has_interrupt(vcpu, probe) {
                    continue;
                }
                if !spent && self.may_take(hart, vcpu) {
                    return Some(vcpu);
                }
                self.make_ready(vcpu, now);
            }
            return None;
        }
        self.go_through(hart, spent, candidates, now, probe)
    }

    /// Goes through the self-wait queue, where reasons may be granted on the way.
    #[inline(never)]
    fn go_through(
        &mut self,
        hart: HartId,
        spent: bool,
        candidates: VcpuSet,
        now: Ticks,
        probe: &mut dyn Probe,
    ) -> Option<VcpuId> {
        let mut cursor = self.queues.first(Queue::SelfWait);
        loop {
            let vcpu = cursor.or_else(|| self.first_granted(hart))?;
            cursor = self.queues.after(vcpu);
            let granted = self.self_wait_ready.contains(vcpu);
            let skipped = !granted && !candidates.contains(vcpu);
            if skipped || !self.has_interrupt(vcpu, probe) {
                continue;
            }
            if !spent && self.may_take(hart, vcpu) {
                return Some(vcpu);
            }
            self.make_ready(vcpu, now);
        }
    }

    #[inline]
    fn may_take(&self, hart: HartId, vcpu: VcpuId) -> bool {
        self.takes(hart).contains(vcpu) && !self.is_out_of_service(vcpu)
    }

    /// The first self-waiting vCPU that may run here and got a reason to when another one's interrupt
    /// was found.
    fn first_granted(&self, hart: HartId) -> Option<VcpuId> {
        let granted = self
            .self_wait_ready
            .intersection(self.may_run[hart.index()]);
        self.queues
            .iter(Queue::SelfWait)
            .find(|&vcpu| granted.contains(vcpu))
    }

    /// Whether a self-waiting vCPU has an interrupt that is a reason to run; then others may get one.
    #[inline]
    fn has_interrupt(&mut self, vcpu: VcpuId, probe: &mut dyn Probe) -> bool {
        if self.self_wait_ready.contains(vcpu) {
            return true;
        }
        let deaf = (self.vcpus[vcpu.index()].as_ref()).is_some_and(|entry| entry.deaf);
        let wait = wait::rules(self.config.wait);
        if deaf || !wait.tests || !probe.pending(vcpu) {
            return false;
        }
        if self.for_words.contains(vcpu) {
            return true;
        }
        if wait.grants_all {
            let partners = self.vm(vcpu).map(|vm| vm.vcpus).unwrap_or_default();
            let partners = self.queues.members(Queue::SelfWait).intersection(partners);
            // Whoever waits for a word has no use for the interrupts of others.
            let granted = partners.without(self.for_words);
            self.self_wait_ready = self.self_wait_ready.union(granted);
        }
        true
    }

    /// The next out of the ready queue, by the rules of paper 000 §3.2.2, but never `avoid`.
    #[inline(never)]
    fn next_ready(&mut self, hart: HartId, avoid: Option<VcpuId>) -> Option<VcpuId> {
        // Each turn but the last empties a subqueue into another, so a few are enough.
        for _ in 0..4 {
            if let Some(vcpu) = self.next_proper_ready(hart, avoid) {
                return Some(vcpu);
            }
            let avoided = avoid.map_or(VcpuSet::EMPTY, VcpuSet::only);
            let candidates = self.dispatchable_on(hart).without(avoided);
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
            let in_service = self.queues.members(Queue::OutService).iter();
            let in_service = in_service
                .filter(|&vcpu| !self.is_out_of_service(vcpu))
                .collect();
            self.move_members(Queue::OutService, in_service, Queue::ProperReady);
        }
        None
    }

    /// The next out of the proper-ready queue: one that ran here last, unless this would pass over
    /// somebody too often. Those whose virtual machine is out of service leave for that queue.
    fn next_proper_ready(&mut self, hart: HartId, avoid: Option<VcpuId>) -> Option<VcpuId> {
        let here = self.takes(hart);
        let mut first = None;
        let mut chosen = None;
        let mut cursor = self.queues.first(Queue::ProperReady);
        while let Some(vcpu) = cursor {
            cursor = self.queues.after(vcpu);
            if !here.contains(vcpu) || self.spin_waits.waits(vcpu) {
                continue;
            }
            if self.is_out_of_service(vcpu) {
                self.queues.push_last(Queue::OutService, vcpu);
                continue;
            }
            if Some(vcpu) == avoid {
                continue;
            }
            let Some(entry) = self.vcpus[vcpu.index()] else {
                continue;
            };
            first = first.or(Some(vcpu));
            if entry.passed_over >= self.config.affinity || entry.last == Some(hart) {
                chosen = Some(vcpu);
                break;
            }
        }
        let chosen = chosen.or(first)?;
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

    /// Puts `vcpu` on `hart`.
    fn enter(&mut self, hart: HartId, vcpu: VcpuId, now: Ticks) -> Dispatch {
        self.queues.remove(vcpu);
        self.self_wait_ready.remove(vcpu);
        self.for_words.remove(vcpu);
        let former = self.last_hart(vcpu);
        if former != Some(hart) {
            if let Some(former) = former {
                self.last_on[former.index()].remove(vcpu);
            }
            self.last_on[hart.index()].insert(vcpu);
        }
        self.harts[hart.index()].rests_since = None;
        let mut left = Ticks::ZERO;
        let mut waited = Ticks::ZERO;
        let mut migrated_from = None;
        if let Some(entry) = self.vcpu_mut(vcpu) {
            left = entry.slice;
            waited = now - entry.since;
            migrated_from = entry.last.filter(|&last| last != hart);
            entry.phase = Phase::Running(hart);
            entry.last = Some(hart);
            entry.word = None;
            entry.deaf = false;
            entry.woken = false;
            entry.preempted_in_supervisor = false;
            entry.preempted_closed = false;
            entry.passed_over = 0;
        }
        if !self.spin_waits.waiting().is_empty() {
            let partners = self.vm(vcpu).map(|vm| vm.vcpus).unwrap_or_default();
            // Only if GSPW is not 0: somebody of the virtual machine is in a spin wait.
            if !self.spin_waits.waiting().intersection(partners).is_empty() {
                let policy = spin::policy(self.config.spin);
                policy.dispatched(&mut self.spin_scene(vcpu));
            }
        }
        let Terms {
            contended,
            sliced,
            trap_waits,
        } = self.terms(hart, vcpu);
        let end = sliced.then_some(if contended {
            left.min(self.quantity_left(vcpu))
        } else {
            left
        });
        let charged_from = contended.then_some(Ticks::ZERO);
        let words = self.hand_words_over(hart);
        self.set_doing(
            hart,
            Doing::Running(Run {
                vcpu,
                end,
                trap_waits,
                charged_from,
                in_place: false,
            }),
        );
        let kicks = self.cover().and(words);
        Dispatch::Run {
            vcpu,
            slice: end,
            trap_waits,
            migrated_from,
            waited,
            kicks,
        }
    }

    /// On what terms `vcpu` runs on `hart` while nothing changes.
    #[inline]
    fn terms(&self, hart: HartId, vcpu: VcpuId) -> Terms {
        let here = self.takes(hart);
        let dedicated = self.vm(vcpu).is_some_and(|vm| vm.dedicated);
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
                && (strict || contended || !watched.is_empty() || !self.words_for(hart).is_empty()),
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
        let tests = wait::rules(self.config.wait).tests;
        let by_tests = if tests {
            watched
        } else {
            watched.intersection(self.for_words)
        };
        !by_tests.is_empty()
    }

    /// Whether a vCPU waits for a word to change.
    pub(crate) fn waits_for_word(&self, vcpu: VcpuId) -> bool {
        self.for_words.contains(vcpu)
    }
}
