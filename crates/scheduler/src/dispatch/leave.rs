//! A vCPU leaves its hart: its time is charged, and its reason decides where it goes.

use crate::base::id::{HartId, VcpuId};
use crate::base::ticks::Ticks;
use crate::decision::{Kicks, Leave, Left};
use crate::dispatch::hart::Doing;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;
use crate::policies::queues::Queue;
use crate::policies::spin::rule::{KnownWait, Suspend};

/// A completed run of a vCPU on a hart.
#[derive(Clone, Copy)]
struct Stay {
    hart: HartId,
    vcpu: VcpuId,
    /// End of the slice in time since the dispatch.
    end: Option<Ticks>,
    ran: Ticks,
}

impl Stay {
    /// Rest of the slice.
    fn rest(self, slice: Ticks) -> Ticks {
        match self.end {
            Some(end) => end - self.ran,
            // Without an end, slices followed each other unnoticed.
            None => slice - Ticks::new(self.ran.get() % slice.get().max(1)),
        }
    }
}

impl Scheduler {
    /// Takes the vCPU off `hart`, which will call [`Scheduler::dispatch`]. A pending stop or pause takes effect now, whatever the reason. Nothing
    /// happens if there is no vCPU on the hart.
    pub fn leave(&mut self, hart: HartId, left: Left, now: Ticks) -> Kicks {
        if self.running(hart).is_none() {
            return Kicks::NONE;
        }
        let _ = self.deschedule(hart, (&left, left.holder), now);
        self.set_doing(hart, Doing::Searching);
        self.assign_harts()
    }

    /// Puts the vCPU on `hart` where it belongs. The hart searches then; the caller updates the sets of harts. Returns true if the vCPU has stopped.
    #[inline]
    pub(crate) fn deschedule<V>(
        &mut self,
        hart: HartId,
        (left, holder): (&Left<V>, Option<VcpuId>),
        now: Ticks,
    ) -> bool {
        let Doing::Running(run) = self.harts[hart.index()].doing else {
            return false;
        };
        self.harts[hart.index()].doing = Doing::Searching;
        let vcpu = run.vcpu;
        let own = left.ran - left.for_others;
        if let Some(from) = run.charged_from {
            self.charge(vcpu, own - from);
        }
        if left.by_others != Ticks::ZERO {
            self.charge_by_others(vcpu, left.by_others);
        }
        if run.by_preemption {
            self.charge_preemption(run, left.round_trip);
        }
        self.executing.remove(vcpu);
        let preempted = matches!(left.cause, Leave::SliceEnd | Leave::Preempted);
        if preempted && left.in_supervisor {
            self.preempted_in_supervisor.insert(vcpu);
            if !left.interrupts_enabled {
                self.preempted_interrupts_off.insert(vcpu);
            }
        }
        let Some(entry) = self.vcpus[vcpu.index()].as_mut() else {
            return false;
        };
        entry.used = entry.used + own;
        if let Some(vm) = self.vms[entry.vm.index()].as_mut() {
            vm.account(own);
            let boost_accounted =
                core::mem::replace(&mut self.harts[hart.index()].boost_accounted, Ticks::ZERO);
            vm.boost_vruntime = vm
                .boost_vruntime
                .wrapping_add(vm.inverse_weight.vruntime(own - boost_accounted));
        }
        let woken = core::mem::take(&mut entry.woken);
        if core::mem::take(&mut entry.stopping) || left.cause == Leave::Stopped {
            entry.phase = Phase::Stopped;
            return true;
        }
        let stay = || Stay {
            hart,
            vcpu,
            end: run.end,
            ran: left.ran,
        };
        match left.cause {
            Leave::SelfWait if !woken => {
                entry.phase = Phase::SelfWait;
                if !entry.paused {
                    self.queues.push_waiting(vcpu);
                }
            }
            _ if entry.paused => entry.phase = Phase::Ready,
            Leave::Spin | Leave::SpinOnWord | Leave::SpinForTurn => {
                self.suspend_spin(stay(), left.renamed(holder), woken, now);
            }
            Leave::Preempted => self.keep_rest_of_slice(stay(), now),
            Leave::SliceEnd => self.end_slice(vcpu, now),
            Leave::SelfWait | Leave::Yield | Leave::Stopped => self.make_ready(vcpu, now),
        }
        false
    }

    /// Requeues a vCPU before others for the rest of its slice.
    #[inline(never)]
    fn keep_rest_of_slice(&mut self, stay: Stay, now: Ticks) {
        let rest = stay.rest(self.config.slice);
        if rest > Ticks::ZERO {
            self.make_ready_first(stay.vcpu, rest, now);
        } else {
            self.end_slice(stay.vcpu, now);
        }
    }

    /// Makes a vCPU ready before the others, with the rest of its slice.
    fn make_ready_first(&mut self, vcpu: VcpuId, rest: Ticks, now: Ticks) {
        self.make_ready(vcpu, now);
        if let Some(entry) = self.vcpu_mut(vcpu) {
            entry.slice = rest;
        }
        if self.queues.queue_of(vcpu) == Some(Queue::ProperReady) {
            self.queues.push_first(Queue::ProperReady, vcpu);
        }
    }

    /// Ends a full slice. A vCPU that is owed service from earlier rounds gets another one at once.
    #[inline(never)]
    fn end_slice(&mut self, vcpu: VcpuId, now: Ticks) {
        let service = self.service(vcpu).copied();
        if service.is_some_and(|service| service.is_owed()) {
            let slice = self.config.slice;
            return self.make_ready_first(vcpu, slice, now);
        }
        // Paper 002 §3.4: at the end of a slice, vCPUs with less service come first.
        let others = self.queues.members(Queue::TimeSliceEnd);
        let next = match service.filter(|_| self.rules.orders_by_service && !others.is_empty()) {
            Some(mine) => self.queues.iter(Queue::TimeSliceEnd).find(|&other| {
                let other = self.service(other);
                other.is_some_and(|other| other.has_less_left(&mine))
            }),
            None => None,
        };
        self.ready_before(next, Queue::TimeSliceEnd, vcpu, now);
    }

    /// Suspends a spin as the policy says.
    #[inline(never)]
    fn suspend_spin(&mut self, stay: Stay, left: Left, woken: bool, now: Ticks) {
        let Stay { hart, vcpu, .. } = stay;
        if self.has_own_hart(vcpu) {
            // A vCPU with a dedicated hart continues to spin (paper 000 §3.1).
            let rest = stay.rest(self.config.slice);
            return self.make_ready_first(vcpu, rest, now);
        }
        // A vCPU that can take the interrupt for which it was woken does not wait for its word.
        let interruptible = Self::is_interruptible(&left);
        let known = match left.cause {
            Leave::SpinForTurn if !(interruptible && woken) => KnownWait::Turn,
            Leave::SpinOnWord if !(interruptible && woken) => KnownWait::Word,
            _ => KnownWait::None,
        };
        let policy = self.config.spin.rule();
        let mut scene = self.spin_scene(vcpu);
        scene.holder = left
            .holder
            .filter(|&holder| scene.partners.contains(holder));
        match policy.suspend(&mut scene, known) {
            Suspend::Continue => self.keep_rest_of_slice(stay, now),
            Suspend::Requeue(queue) => self.ready_in(queue, vcpu, now),
            Suspend::Wait(partners) => {
                self.make_ready(vcpu, now);
                self.spin_waits.wait(vcpu, partners);
            }
            Suspend::Skip => {
                self.make_ready(vcpu, now);
                self.harts[hart.index()].skip = Some(vcpu);
            }
            Suspend::YieldTo(partner) => {
                self.make_ready(vcpu, now);
                if left.in_supervisor {
                    self.yielded_in_supervisor.insert(vcpu);
                }
                self.yield_to(hart, partner);
            }
            Suspend::WaitForWord { yield_to } => {
                let turn = known == KnownWait::Turn;
                self.wait_for_word(vcpu, &left, (turn, woken), now);
                if let Some(partner) = yield_to {
                    self.yield_to(hart, partner);
                }
            }
        }
    }

    /// Makes `partner` the next on `hart`, if it can be.
    fn yield_to(&mut self, hart: HartId, partner: VcpuId) {
        self.harts[hart.index()].next = Some(partner);
        if let Some(vm) = self.vm_mut(partner) {
            vm.last_yielded_to = Some(partner);
        }
    }
}
