//! A vCPU leaves its hart: its time is charged, and it goes to where its reason sends it.

use crate::decision::{Kicks, Leave, Left};
use crate::hart::Doing;
use crate::id::{HartId, VcpuId};
use crate::queue::Queue;
use crate::service::Service;
use crate::spin::{self, Known, Suspend};
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::{Phase, Word};

/// A wait for a word that has had so many exits was interrupted each time. The next interrupt has to wait for a service round,
/// in which whoever the vCPU waits for will have run, or until a hart has nothing else to do: where others wait for the vCPU to take its
/// interrupt, as for a function that each CPU is to carry out, they would all wait together with harts idle.
const MOST_EXITS: u32 = 4;

/// A stay on a hart that is over.
#[derive(Clone, Copy)]
struct Stay {
    hart: HartId,
    vcpu: VcpuId,
    /// When the slice was to end, in time since the dispatch.
    end: Option<Ticks>,
    ran: Ticks,
}

impl Stay {
    /// The rest of the slice.
    fn rest(self, slice: Ticks) -> Ticks {
        match self.end {
            Some(end) => end - self.ran,
            // Where no end was set, slices followed each other without notice.
            None => slice - Ticks::new(self.ran.get() % slice.get().max(1)),
        }
    }
}

impl Scheduler {
    /// The vCPU on `hart` has left it, and the hart will call [`Scheduler::dispatch`]. A stop or
    /// pause that it was told of takes effect now, whatever the reason. Nothing happens if there is
    /// no vCPU on the hart.
    pub fn leave(&mut self, hart: HartId, left: Left, now: Ticks) -> Kicks {
        if self.running(hart).is_none() {
            return Kicks::NONE;
        }
        let _ = self.put_away(hart, &left, now);
        self.set_doing(hart, Doing::Searching);
        self.cover()
    }

    /// Puts the vCPU on `hart` to where it belongs. The hart searches then; the caller brings the sets of harts in step. True
    /// where the vCPU has stopped.
    #[inline]
    pub(crate) fn put_away(&mut self, hart: HartId, left: &Left, now: Ticks) -> bool {
        let Doing::Running(run) = self.harts[hart.index()].doing else {
            return false;
        };
        self.harts[hart.index()].doing = Doing::Searching;
        let vcpu = run.vcpu;
        if let Some(from) = run.charged_from {
            self.charge(vcpu, left.ran - from);
        }
        if run.hurried {
            self.pay_for_hurry(run, left);
        }
        self.working.remove(vcpu);
        let preempted = matches!(left.reason, Leave::SliceEnd | Leave::Preempted);
        if preempted && left.supervisor {
            self.preempted_in_supervisor.insert(vcpu);
            if !left.open {
                self.preempted_closed.insert(vcpu);
            }
        }
        let Some(entry) = self.vcpus[vcpu.index()].as_mut() else {
            return false;
        };
        entry.used = entry.used + left.ran;
        if let Some(vm) = self.vms[entry.vm.index()].as_mut() {
            vm.note_stay(left.ran);
            let counted = core::mem::replace(&mut self.harts[hart.index()].counted, Ticks::ZERO);
            vm.had = vm.had.wrapping_add(vm.pace.of_time(left.ran - counted));
        }
        let woken = core::mem::take(&mut entry.woken);
        if core::mem::take(&mut entry.stopping) || left.reason == Leave::Stopped {
            entry.phase = Phase::Stopped;
            return true;
        }
        let stay = || Stay {
            hart,
            vcpu,
            end: run.end,
            ran: left.ran,
        };
        match left.reason {
            Leave::SelfWait if !woken => {
                entry.phase = Phase::SelfWait;
                if !entry.paused {
                    self.queues.begin_to_wait(vcpu);
                }
            }
            _ if entry.paused => entry.phase = Phase::Ready,
            Leave::Spin | Leave::SpinOnWord | Leave::SpinForTurn => {
                self.suspend_spin(stay(), *left, woken, now);
            }
            Leave::Preempted => self.go_on_later(stay(), now),
            Leave::SliceEnd => self.end_slice(vcpu, now),
            Leave::SelfWait | Leave::Yield | Leave::Stopped => self.make_ready(vcpu, now),
        }
        false
    }

    /// The vCPU of `stay` is to have the rest of its slice before others.
    #[inline(never)]
    fn go_on_later(&mut self, stay: Stay, now: Ticks) {
        let rest = stay.rest(self.config.slice);
        if rest > Ticks::ZERO {
            self.put_first(stay.vcpu, rest, now);
        } else {
            self.end_slice(stay.vcpu, now);
        }
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
        let by_service = self.rules.orders_by_service;
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
        if next.is_some() {
            self.queues.insert(Queue::TimeSliceEnd, vcpu, next);
        }
    }

    /// Suspends a spin as the policy says.
    #[inline(never)]
    fn suspend_spin(&mut self, stay: Stay, left: Left, woken: bool, now: Ticks) {
        let Stay { hart, vcpu, .. } = stay;
        if self.has_own_hart(vcpu) {
            // On a hart of its own, a vCPU had better spin (paper 000 §3.1).
            let rest = stay.rest(self.config.slice);
            return self.put_first(vcpu, rest, now);
        }
        // One that could take an interrupt, and was woken already, has no reason to wait for its word.
        let hears = left.open && left.exits < MOST_EXITS;
        let known = match left.reason {
            Leave::SpinForTurn if !(hears && woken) => Known::Turn,
            Leave::SpinOnWord if !(hears && woken) => Known::Word,
            _ => Known::Nothing,
        };
        let policy = spin::policy(self.config.spin);
        let mut scene = self.spin_scene(vcpu);
        scene.holder = left
            .holder
            .filter(|&holder| scene.partners.contains(holder));
        match policy.suspend(&mut scene, known) {
            Suspend::GoOn => self.go_on_later(stay, now),
            Suspend::Requeue(queue) => self.ready_in(queue, vcpu, now),
            Suspend::Wait(partners) => {
                self.make_ready(vcpu, now);
                self.spin_waits.wait(vcpu, partners);
            }
            Suspend::GiveWay => {
                self.make_ready(vcpu, now);
                self.harts[hart.index()].avoid = Some(vcpu);
            }
            Suspend::Favour(partner) => {
                self.make_ready(vcpu, now);
                if left.supervisor {
                    self.gave_way_in_supervisor.insert(vcpu);
                }
                self.favour(hart, partner);
            }
            Suspend::WaitForWord { favour } => {
                let turn = known == Known::Turn;
                self.wait_for_word(vcpu, &left, (turn, woken), now);
                if let Some(partner) = favour {
                    self.favour(hart, partner);
                }
            }
        }
    }

    /// `vcpu`, which spins, waits for its word or for its turn; in both cases it was perhaps woken before.
    fn wait_for_word(
        &mut self,
        vcpu: VcpuId,
        left: &Left,
        (turn, woken): (bool, bool),
        now: Ticks,
    ) {
        let until = now + self.config.reservation_limit;
        let hears_from = match (left.open, left.exits) {
            (false, _) => until,
            (true, ..MOST_EXITS) => now,
            (true, _) => now + self.round(),
        };
        let deaf = hears_from > now;
        if deaf {
            self.deaf.insert(vcpu);
        }
        if let Some(entry) = self.vcpu_mut(vcpu) {
            entry.phase = Phase::SelfWait;
            entry.woken = deaf && woken;
            entry.word = Some(Word {
                until,
                hears_from,
                open: left.open,
                turn,
            });
        }
        self.for_words.insert(vcpu);
        self.queues.begin_to_wait(vcpu);
    }

    /// Makes `partner` the next on `hart`, if it can be.
    fn favour(&mut self, hart: HartId, partner: VcpuId) {
        self.harts[hart.index()].favour = Some(partner);
        if let Some(vm) = self.vm_mut(partner) {
            vm.favoured = Some(partner);
        }
    }
}
