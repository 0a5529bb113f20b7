//! Events of vCPUs: starts, stops, pauses and wake-ups.

use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::Kicks;
use crate::dispatch::hart::Doing;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;
use crate::policies::queues::Queue;

impl Scheduler {
    /// Starts a vCPU that is stopped and has left its hart.
    pub fn start(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        if self.vcpus[vcpu.index()].is_none_or(|vcpu| vcpu.phase != Phase::Stopped) {
            return Kicks::NONE;
        }
        self.make_ready(vcpu, now);
        self.assign_harts()
    }

    /// Stops a vCPU in any state; this ends a pause too. A hart that runs it is kicked and must make it leave; until then its state is
    /// [`crate::VcpuState::Stopping`].
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
        entry.woken = false;
        self.word_waiters.remove(vcpu);
        self.uninterruptible.remove(vcpu);
        self.dequeue(vcpu);
        self.assign_harts()
    }

    /// Pauses a vCPU until [`Scheduler::resume`]; a wake-up meanwhile is remembered. A hart that runs it is kicked and must make it leave.
    pub fn pause(&mut self, vcpu: VcpuId) -> Kicks {
        let granted = self.self_wait_ready.contains(vcpu);
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return Kicks::NONE;
        };
        entry.paused = true;
        if let Phase::Running(hart) = entry.phase {
            return Kicks(HartSet::only(hart));
        }
        // A change of a word that no hart polls, or a known interrupt, must not be missed.
        entry.woken = false;
        if entry.word.take().is_some() || granted {
            entry.phase = Phase::Ready;
        }
        self.word_waiters.remove(vcpu);
        self.uninterruptible.remove(vcpu);
        self.dequeue(vcpu);
        self.assign_harts()
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
                self.queues.push_waiting(vcpu);
                // The hart that holds its interrupt file must watch it, or trap waits, again.
                let keeper = last.map_or(HartSet::EMPTY, HartSet::only);
                for hart in keeper.intersection(self.idle).iter() {
                    self.set_doing(hart, Doing::Searching);
                }
                return Kicks(keeper.intersection(self.online)).and(self.assign_harts());
            }
            (Phase::Stopped | Phase::Running(_), _) => {}
        }
        self.assign_harts()
    }

    /// Wakes a vCPU for an interrupt or a timer: if it waits for one, it becomes ready. For a vCPU on a hart the wake-up is remembered, and it does
    /// not wait when it leaves. Ready and stopped vCPUs do not change.
    pub fn wake(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let uninterruptible =
            self.uninterruptible.contains(vcpu) && !self.may_interrupt_on_free_hart(vcpu);
        let Some(entry) = self.vcpu_mut(vcpu) else {
            return Kicks::NONE;
        };
        match entry.phase {
            Phase::Running(_) => {
                entry.woken = true;
                Kicks::NONE
            }
            // It finds the interrupt when it is dispatched, or once it is interruptible.
            Phase::SelfWait if uninterruptible => {
                entry.woken = true;
                Kicks::NONE
            }
            Phase::SelfWait => {
                self.make_ready(vcpu, now);
                let preempted = self.preempt_on_wake(vcpu, now);
                self.assign_harts().and(preempted)
            }
            Phase::Stopped | Phase::Ready => Kicks::NONE,
        }
    }

    /// [`Scheduler::wake`] for each of `vcpus`.
    pub fn wake_all(&mut self, vcpus: VcpuSet, now: Ticks) -> Kicks {
        let wake = |kicks: Kicks, vcpu| kicks.and(self.wake(vcpu, now));
        vcpus.iter().fold(Kicks::NONE, wake)
    }

    /// Time at which the vCPU on `hart` last became ready, which may have been before it last ran. 0 if there is none.
    #[must_use]
    pub fn ready_since(&self, hart: HartId) -> Ticks {
        let vcpu = self.running(hart);
        vcpu.and_then(|vcpu| self.vcpus[vcpu.index()].as_ref())
            .map_or(Ticks::ZERO, |entry| entry.since)
    }

    /// Takes a vCPU out of its queue and out of all spin waits.
    pub(crate) fn dequeue(&mut self, vcpu: VcpuId) {
        self.queues.remove(vcpu);
        self.self_wait_ready.remove(vcpu);
        let partners = self.partners(vcpu);
        self.spin_waits.forget(vcpu, partners);
    }

    /// Makes a vCPU ready behind the others, with a full slice; if it is paused, from its resumption on.
    pub(crate) fn make_ready(&mut self, vcpu: VcpuId, now: Ticks) {
        self.ready_in(Queue::ProperReady, vcpu, now);
    }

    /// Makes a vCPU ready behind the others of one subqueue.
    pub(crate) fn ready_in(&mut self, queue: Queue, vcpu: VcpuId, now: Ticks) {
        self.ready_before(None, queue, vcpu, now);
    }

    /// Makes a vCPU ready before `next` of one subqueue, or behind all others there.
    pub(crate) fn ready_before(
        &mut self,
        next: Option<VcpuId>,
        queue: Queue,
        vcpu: VcpuId,
        now: Ticks,
    ) {
        let slice = self.config.slice;
        let out = self.is_out_of_service(vcpu);
        let Some(entry) = self.vcpus[vcpu.index()].as_mut() else {
            return;
        };
        if entry.phase == Phase::SelfWait {
            self.self_wait_ready.remove(vcpu);
            self.word_waiters.remove(vcpu);
            self.uninterruptible.remove(vcpu);
        }
        entry.phase = Phase::Ready;
        entry.word = None;
        entry.woken = false;
        entry.slice = slice;
        entry.since = now;
        entry.passed_over = 0;
        if entry.paused {
            return;
        }
        match out {
            true => self.queues.push_last(Queue::OutService, vcpu),
            false => self.queues.insert(queue, vcpu, next),
        }
    }

    /// Makes a vCPU ready before all that have not waited for a whole service round.
    pub(crate) fn make_ready_early(&mut self, vcpu: VcpuId, now: Ticks) {
        self.make_ready(vcpu, now);
        if self.queues.queue_of(vcpu) != Some(Queue::ProperReady) {
            return;
        }
        let round = self.round();
        let is_recent = |other: &VcpuId| {
            self.vcpus[other.index()].is_some_and(|entry| now - entry.since < round)
        };
        let next = self.queues.iter(Queue::ProperReady).find(is_recent);
        self.queues.insert(Queue::ProperReady, vcpu, next);
    }
}
