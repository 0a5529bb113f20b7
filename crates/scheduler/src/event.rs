//! What happens to vCPUs: starts, stops, pauses, wake-ups, and their leaving a hart.

use crate::decision::{Kicks, Leave, Left};
use crate::hart::{Doing, Run};
use crate::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::queue::Queue;
use crate::service::Service;
use crate::spin;
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::{Phase, Word};
use crate::wait;

/// A wait for a word that has had so many exits was interrupted each time. The next interrupt has to wait for a service round,
/// in which whoever the vCPU waits for will have run.
const MOST_EXITS: u32 = 4;

/// A vCPU that has left its hart because it spins, with the rest of its slice.
struct Spinner {
    hart: HartId,
    vcpu: VcpuId,
    rest: Ticks,
    holder: Option<VcpuId>,
}

impl Scheduler {
    /// Starts a stopped vCPU. Nothing happens to one that is not stopped, or that still has to leave
    /// its hart after a stop.
    pub fn start(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        if self.vcpus[vcpu.index()].is_none_or(|vcpu| vcpu.phase != Phase::Stopped) {
            return Kicks::NONE;
        }
        self.make_ready(vcpu, now);
        self.cover()
    }

    /// Stops a vCPU, whatever it is doing; this ends a pause too. If it is on a hart, that hart is kicked
    /// and must make it leave; until then its state is [`crate::VcpuState::Stopping`].
    pub fn stop(&mut self, vcpu: VcpuId) -> Kicks {
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return Kicks::NONE;
        };
        entry.paused = false;
        if let Phase::Running(hart) = entry.phase {
            entry.stopping = true;
            return Kicks(HartSet::only(hart));
        }
        entry.phase = Phase::Stopped;
        entry.word = None;
        entry.deaf = false;
        entry.woken = false;
        self.for_words.remove(vcpu);
        self.withdraw(vcpu);
        self.cover()
    }

    /// Pauses a vCPU until [`Scheduler::resume`]; what it was doing otherwise goes on, so that a
    /// wake-up is remembered. If it is on a hart, that hart is kicked and must make it leave.
    pub fn pause(&mut self, vcpu: VcpuId) -> Kicks {
        let granted = self.self_wait_ready.contains(vcpu);
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return Kicks::NONE;
        };
        entry.paused = true;
        if let Phase::Running(hart) = entry.phase {
            return Kicks(HartSet::only(hart));
        }
        // A word that changes while nobody tests it, or a reason that is known, must not be missed.
        entry.deaf = false;
        entry.woken = false;
        if entry.word.take().is_some() || granted {
            entry.phase = Phase::Ready;
        }
        self.for_words.remove(vcpu);
        self.withdraw(vcpu);
        self.cover()
    }

    /// Ends a pause.
    pub fn resume(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return Kicks::NONE;
        };
        if !core::mem::take(&mut entry.paused) {
            return Kicks::NONE;
        }
        match (entry.phase, entry.last) {
            (Phase::Ready, _) => self.make_ready(vcpu, now),
            (Phase::SelfWait, last) => {
                self.queues.begin_to_wait(vcpu);
                // The hart that holds its interrupt file must watch it, or trap waits, again.
                let keeper = last.map_or(HartSet::EMPTY, HartSet::only);
                for hart in keeper.intersection(self.idle).iter() {
                    self.set_doing(hart, Doing::Searching);
                }
                return Kicks(keeper.intersection(self.online)).and(self.cover());
            }
            (Phase::Stopped | Phase::Running(_), _) => {}
        }
        self.cover()
    }

    /// An interrupt or a timer has come for a vCPU: if it waits for one, it becomes ready. A vCPU
    /// that is on a hart is remembered, and does not fall asleep when it leaves to wait. One that is
    /// ready already, or stopped, is not changed.
    pub fn wake(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return Kicks::NONE;
        };
        match entry.phase {
            Phase::Running(_) => {
                entry.woken = true;
                Kicks::NONE
            }
            // It finds the interrupt when it is dispatched, or hears of it later.
            Phase::SelfWait if entry.deaf => {
                entry.woken = true;
                Kicks::NONE
            }
            Phase::SelfWait => {
                self.make_ready(vcpu, now);
                self.cover()
            }
            Phase::Stopped | Phase::Ready => Kicks::NONE,
        }
    }

    /// [`Scheduler::wake`] for each of `vcpus`.
    pub fn wake_all(&mut self, vcpus: VcpuSet, now: Ticks) -> Kicks {
        let wake = |kicks: Kicks, vcpu| kicks.and(self.wake(vcpu, now));
        vcpus.iter().fold(Kicks::NONE, wake)
    }

    /// The vCPU on `hart` has left it, and the hart will call [`Scheduler::dispatch`]. A stop or
    /// pause that it was told of takes effect now, whatever the reason. Nothing happens if there is
    /// no vCPU on the hart.
    pub fn leave(&mut self, hart: HartId, left: Left, now: Ticks) -> Kicks {
        let Some(run) = self.harts[hart.index()].run() else {
            return Kicks::NONE;
        };
        let vcpu = run.vcpu;
        let rest = self.settle(hart, run, left.ran);
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return Kicks::NONE;
        };
        let preempted = matches!(left.reason, Leave::SliceEnd | Leave::Preempted);
        entry.preempted_in_supervisor = preempted && left.supervisor;
        entry.preempted_closed = preempted && left.supervisor && !left.open;
        if core::mem::take(&mut entry.stopping) || left.reason == Leave::Stopped {
            entry.phase = Phase::Stopped;
            entry.woken = false;
            return self.cover();
        }
        let woken = core::mem::take(&mut entry.woken);
        match left.reason {
            Leave::SelfWait if !woken => {
                entry.phase = Phase::SelfWait;
                if !entry.paused {
                    self.queues.begin_to_wait(vcpu);
                }
            }
            _ if entry.paused => entry.phase = Phase::Ready,
            Leave::Spin | Leave::SpinOnWord | Leave::SpinForTurn => {
                let word = self.wait_for_word(&left, vcpu, woken, now);
                let holder = left.holder;
                let spinner = Spinner {
                    hart,
                    vcpu,
                    rest,
                    holder,
                };
                self.suspend_spin(spinner, word, now);
            }
            Leave::Preempted if rest > Ticks::ZERO => self.put_first(vcpu, rest, now),
            Leave::SliceEnd | Leave::Preempted => self.end_slice(vcpu, now),
            Leave::SelfWait | Leave::Yield | Leave::Stopped => self.make_ready(vcpu, now),
        }
        self.cover()
    }

    /// How `vcpu`, which spins, would wait for its word, where that is known; and whether it hears of interrupts.
    fn wait_for_word(
        &mut self,
        left: &Left,
        vcpu: VcpuId,
        woken: bool,
        now: Ticks,
    ) -> Option<Word> {
        if left.reason == Leave::Spin {
            return None;
        }
        let until = now + self.config.reservation_limit;
        let hears_from = match (left.open, left.exits) {
            (false, _) => until,
            (true, ..MOST_EXITS) if woken => return None,
            (true, ..MOST_EXITS) => now,
            (true, _) => now + self.round(),
        };
        if hears_from > now
            && let Some(entry) = self.vcpu_mut(vcpu)
        {
            entry.deaf = true;
            entry.woken = woken;
        }
        Some(Word {
            until,
            hears_from,
            turn: left.reason == Leave::SpinForTurn,
        })
    }

    /// Takes a vCPU out of its queue and out of everybody's mind.
    fn withdraw(&mut self, vcpu: VcpuId) {
        self.queues.remove(vcpu);
        self.self_wait_ready.remove(vcpu);
        let partners = self.vm(vcpu).map(|vm| vm.vcpus).unwrap_or_default();
        self.spin_waits.forget(vcpu, partners);
    }

    /// Accounts for the time since the dispatch, and frees the hart. Returns the rest of the slice.
    fn settle(&mut self, hart: HartId, run: Run, ran: Ticks) -> Ticks {
        self.set_doing(hart, Doing::Searching);
        let slice = self.config.slice;
        if let Some(vm) = self.vm_mut(run.vcpu) {
            vm.used = vm.used + ran;
        }
        if let Some(from) = run.charged_from {
            self.charge(run.vcpu, ran - from);
        }
        match run.end {
            Some(end) => end - ran,
            // Where no end was set, slices followed each other without notice.
            None => slice - Ticks::new(ran.get() % slice.get().max(1)),
        }
    }

    /// Makes a vCPU ready behind the others, with a full slice; if it is paused, it will be when it
    /// is resumed.
    pub(crate) fn make_ready(&mut self, vcpu: VcpuId, now: Ticks) {
        self.ready_in(Queue::ProperReady, vcpu, now);
    }

    /// The same, behind the others of one subqueue.
    pub(crate) fn ready_in(&mut self, queue: Queue, vcpu: VcpuId, now: Ticks) {
        let slice = self.config.slice;
        self.self_wait_ready.remove(vcpu);
        self.for_words.remove(vcpu);
        let out = self.is_out_of_service(vcpu);
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return;
        };
        entry.phase = Phase::Ready;
        entry.word = None;
        entry.deaf = false;
        entry.woken = false;
        entry.slice = slice;
        entry.since = now;
        entry.passed_over = 0;
        if entry.paused {
            return;
        }
        self.queues
            .push_last(if out { Queue::OutService } else { queue }, vcpu);
    }

    /// Makes a vCPU ready before all that have not waited for a whole service round.
    pub(crate) fn make_ready_early(&mut self, vcpu: VcpuId, now: Ticks) {
        self.make_ready(vcpu, now);
        if self.queues.holding(vcpu) != Some(Queue::ProperReady) {
            return;
        }
        let round = self.round();
        let is_recent = |other: &VcpuId| {
            self.vcpus[other.index()].is_some_and(|entry| now - entry.since < round)
        };
        let next = self.queues.iter(Queue::ProperReady).find(is_recent);
        self.queues.insert(Queue::ProperReady, vcpu, next);
    }

    /// Makes a vCPU ready before the others, with the rest of its slice.
    fn put_first(&mut self, vcpu: VcpuId, rest: Ticks, now: Ticks) {
        self.make_ready(vcpu, now);
        if let Some(entry) = self.vcpu_mut(vcpu) {
            entry.slice = rest;
        }
        if self.queues.holding(vcpu) == Some(Queue::ProperReady) {
            self.queues.push_first(Queue::ProperReady, vcpu);
        }
    }

    /// A full slice is consumed. Who is owed service from earlier rounds gets another one at once.
    #[inline(never)]
    fn end_slice(&mut self, vcpu: VcpuId, now: Ticks) {
        if self.service(vcpu).is_some_and(Service::is_owed) {
            let slice = self.config.slice;
            return self.put_first(vcpu, slice, now);
        }
        self.ready_in(Queue::TimeSliceEnd, vcpu, now);
        let by_service = wait::rules(self.config.wait).orders_by_service;
        if !by_service || self.queues.holding(vcpu) != Some(Queue::TimeSliceEnd) {
            return;
        }
        // Paper 002 §3.4: at the end of a slice, who has had less service comes first.
        let Some(mine) = self.service(vcpu) else {
            return;
        };
        let next = self.queues.iter(Queue::TimeSliceEnd).find(|&other| {
            let other = self.service(other);
            other.is_some_and(|other| other.has_less_left(mine))
        });
        self.queues.insert(Queue::TimeSliceEnd, vcpu, next);
    }

    /// Suspends a spin as the policy says.
    #[inline(never)]
    fn suspend_spin(&mut self, spinner: Spinner, word: Option<Word>, now: Ticks) {
        let Spinner {
            hart,
            vcpu,
            rest,
            holder,
        } = spinner;
        if self.vm(vcpu).is_none_or(|vm| vm.dedicated) {
            // On a hart of its own, a vCPU had better spin (paper 000 §3.1).
            return self.put_first(vcpu, rest, now);
        }
        let policy = spin::policy(self.config.spin);
        let mut scene = self.spin_scene(vcpu);
        scene.holder = holder.filter(|&holder| scene.partners.contains(holder));
        match policy.suspend(&mut scene, word) {
            spin::Suspend::GoOn if rest > Ticks::ZERO => self.put_first(vcpu, rest, now),
            spin::Suspend::GoOn => self.end_slice(vcpu, now),
            spin::Suspend::Requeue(queue) => self.ready_in(queue, vcpu, now),
            spin::Suspend::Wait(partners) => {
                self.make_ready(vcpu, now);
                self.spin_waits.wait(vcpu, partners);
            }
            spin::Suspend::GiveWay => {
                self.make_ready(vcpu, now);
                self.harts[hart.index()].avoid = Some(vcpu);
            }
            spin::Suspend::Favour(partner) => {
                self.make_ready(vcpu, now);
                self.favour(hart, partner);
            }
            spin::Suspend::WaitForWord { word, favour } => {
                if let Some(entry) = self.vcpu_mut(vcpu) {
                    entry.phase = Phase::SelfWait;
                    entry.word = Some(word);
                }
                self.for_words.insert(vcpu);
                self.queues.begin_to_wait(vcpu);
                if let Some(partner) = favour {
                    self.favour(hart, partner);
                }
            }
        }
    }

    /// Makes `partner` the next on `hart`, if it can be.
    fn favour(&mut self, hart: HartId, partner: VcpuId) {
        self.harts[hart.index()].favour = Some(partner);
        if let Some(vm) = self.vm_mut(partner) {
            vm.favoured = Some(partner);
        }
    }
}
