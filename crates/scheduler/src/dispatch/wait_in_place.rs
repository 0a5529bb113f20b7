//! Waiting in place: a vCPU that waits for its own interrupts stays on a hart that no other vCPU wants.
//!
//! Paper 002 lets an idle processor wait actively. The vCPU that has just begun to wait is the one that will need the hart next most probably, so its
//! registers and its interrupt file stay: when its own interrupt comes, nothing is dispatched. To other harts this one counts as idle.

use crate::base::id::{HartId, HartSet, VcpuId};
use crate::base::ticks::Ticks;
use crate::decision::{Continue, InPlace, Kicks, Leave};
use crate::dispatch::hart::{Doing, Run};
use crate::dispatch::table::Scheduler;
use crate::policies::queues::Queue;

impl Scheduler {
    /// Decides whether the vCPU on `hart`, which has run for `ran` since its dispatch, may wait for its own interrupts without leaving. If so, the
    /// hart waits until an interrupt comes for this vCPU, for one of those named, or for the hypervisor, and then calls
    /// [`Scheduler::end_wait_in_place`], [`Scheduler::leave`], or after a kick [`Scheduler::reconsider`].
    pub fn wait_in_place(&mut self, hart: HartId, ran: Ticks, now: Ticks) -> InPlace {
        let Some(run) = self.harts[hart.index()].run() else {
            return InPlace::No;
        };
        let here = self.may_run[hart.index()].contains(run.vcpu);
        let Some(entry) = self.vcpus[run.vcpu.index()].as_mut() else {
            return InPlace::No;
        };
        if entry.stopping || entry.paused || !here {
            return InPlace::No;
        }
        if core::mem::take(&mut entry.woken) {
            return InPlace::Woken;
        }
        if !self.may_wait_in_place(hart) {
            return InPlace::No;
        }
        if let Some(from) = run.charged_from {
            self.charge(run.vcpu, ran - from);
        }
        let waits = Run {
            charged_from: None,
            in_place: true,
            ..run
        };
        self.executing.remove(run.vcpu);
        self.set_doing(hart, Doing::Running(waits));
        self.note_idle(hart, now);
        InPlace::With(self.watched(hart))
    }

    /// Ends the wait in place on `hart` after `ran` since the dispatch: the vCPU continues, with a new slice if the old one is over, unless the hart
    /// was kicked for other work.
    pub fn end_wait_in_place(&mut self, hart: HartId, ran: Ticks) -> Continue {
        let Some(run) = self.harts[hart.index()].run() else {
            return Continue::Leave(Leave::Preempted);
        };
        let stays = self.vcpus[run.vcpu.index()]
            .as_ref()
            .is_some_and(|entry| !entry.stopping && !entry.paused && !entry.woken);
        if !stays || !self.in_place.contains(hart) {
            return self.reconsider(hart, ran);
        }
        let slice = self.config.slice;
        // All waiters here were watched until now, so none has missed the end of a slice.
        let end = run.end.map(|end| if ran < end { end } else { ran + slice });
        let goes_on = Run {
            end,
            in_place: false,
            ..run
        };
        self.executing.insert(run.vcpu);
        self.set_doing(hart, Doing::Running(goes_on));
        self.harts[hart.index()].idle_since = None;
        Continue::Stay {
            slice: end.map(|end| end - ran),
            trap_waits: run.trap_waits,
        }
    }

    /// Sends `found`, which waits on `hart` beside a vCPU that waits in place and for which an interrupt has come, to another hart, if the one in
    /// place has waited briefly and the other hart has been idle for much longer: two busy vCPUs would change places again and again. Returns the
    /// harts to kick; `None`: the vCPU on `hart` must leave.
    pub fn spread(&mut self, hart: HartId, found: VcpuId, now: Ticks) -> Option<Kicks> {
        let slice = self.config.slice.get();
        let rested = |hart: HartId| {
            let since = self.harts[hart.index()].idle_since;
            since.map_or(0, |since| (now - since).get())
        };
        let here = rested(hart);
        let much = here.saturating_mul(4).max(slice / 128);
        if here >= slice / 16 {
            return None;
        }
        let to = self
            .spread_targets(hart, found)
            .iter()
            .max_by_key(|&to| rested(to))
            .filter(|&to| rested(to) >= much);
        to.map(|to| self.send(found, to, now))
    }

    /// Harts, besides `hart`, on which `found`, which waits on `hart`, could run at once.
    pub(crate) fn spread_targets(&self, hart: HartId, found: VcpuId) -> HartSet {
        if self.queues.queue_of(found) != Some(Queue::SelfWait) || self.waits_for_word(found) {
            return HartSet::EMPTY;
        }
        self.idle
            .union(self.in_place)
            .intersection(self.allowed(found))
            .without(HartSet::only(hart))
    }

    /// Makes `found`, which waits, the next on `to`, which is idle.
    pub(crate) fn send(&mut self, found: VcpuId, to: HartId, now: Ticks) -> Kicks {
        self.make_ready(found, now);
        self.harts[to.index()].next = Some(found);
        self.note_kick(to);
        Kicks(HartSet::only(to)).and(self.assign_harts())
    }

    /// Notes that `hart` is idle from now on, if it was not.
    pub(crate) fn note_idle(&mut self, hart: HartId, now: Ticks) {
        self.harts[hart.index()].idle_since.get_or_insert(now);
    }

    /// Returns true if no other vCPU could use `hart` while its vCPU waits there.
    pub(crate) fn may_wait_in_place(&self, hart: HartId) -> bool {
        let here = self.may_run[hart.index()];
        let ready = self.queues.ready().union(self.self_wait_ready);
        self.rules.in_place
            && !self.always_moves()
            && ready.intersection(here).is_empty()
            && self.word_waiters_on(hart).is_empty()
    }
}
