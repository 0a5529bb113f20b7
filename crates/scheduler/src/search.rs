//! The search: whom a hart finds to run next, in the self-wait queue and then in the ready queue.

use crate::decision::Probe;
use crate::id::{HartId, VcpuId, VcpuSet};
use crate::queue::Queue;
use crate::table::Scheduler;
use crate::ticks::Ticks;

/// Of so many self-waiting vCPUs the first is found by comparing when they came; of more, by going through the queue.
const FEW: usize = 8;

impl Scheduler {
    /// Chooses who is next on `hart`, which searches.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        self.renew_favoured_machine(now);
        if self.favoured_machine.vm.is_some()
            && let Some(vcpu) = self.take_of_favoured_machine(hart, now, probe)
        {
            return Some(vcpu);
        }
        let some_wait = !self.queues.members(Queue::SelfWait).is_empty();
        if some_wait && let Some(vcpu) = self.take_self_waiting(hart, now, probe) {
            let place = &mut self.harts[hart.index()];
            place.self_waits = place.self_waits.saturating_add(1);
            return Some(vcpu);
        }
        self.harts[hart.index()].self_waits = 0;
        // Nobody but these can come out of the ready queue.
        let dispatchable = self.dispatchable_on(hart);
        if dispatchable.is_empty() {
            return None;
        }
        let is_next =
            |vcpu: &VcpuId| dispatchable.contains(*vcpu) && !self.is_out_of_service(*vcpu);
        if let Some(vcpu) = self.next_by_hurry(hart) {
            return Some(vcpu);
        }
        if let Some(vcpu) = self.harts[hart.index()].favour.filter(is_next) {
            return Some(vcpu);
        }
        let avoid = self.harts[hart.index()].avoid;
        self.next_ready(hart, avoid)
            .or_else(|| avoid.and_then(|_| self.next_ready(hart, None)))
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
        probe: &mut impl Probe,
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
        probe: &mut impl Probe,
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
            let Some(word) = self.vcpus[vcpu.index()]
                .as_ref()
                .and_then(|entry| entry.word)
            else {
                continue;
            };
            let is_over = now >= word.until || probe.changed(vcpu);
            let hears = now >= word.hears_from || word.open && self.has_room_for(hart, vcpu);
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

    /// Whether `hart`, which searches, or another one has nothing to do but to run `vcpu`.
    fn has_room_for(&self, hart: HartId, vcpu: VcpuId) -> bool {
        let here = self.dispatchable_on(hart).is_empty() && self.takes(hart).contains(vcpu);
        here || self.has_free_hart(vcpu)
    }

    /// The time in which `vcpu` is not to be interrupted is over. Whether it was woken in it.
    fn hears_again(&mut self, vcpu: VcpuId) -> bool {
        if !self.deaf.contains(vcpu) {
            return false;
        }
        self.deaf.remove(vcpu);
        self.vcpu_mut(vcpu)
            .is_some_and(|entry| core::mem::take(&mut entry.woken))
    }

    /// Whether `vcpu` ran last on `hart`, or where a partner runs now: who waits for each other had better run at the same
    /// time than one after the other.
    pub(crate) fn is_at_its_place(&self, hart: HartId, vcpu: VcpuId) -> bool {
        let Some(last) = self.last_hart(vcpu) else {
            return true;
        };
        let there = self.running(last);
        last == hart || there.is_some_and(|other| self.partners(vcpu).contains(other))
    }

    fn take_by_interrupt(
        &mut self,
        hart: HartId,
        spent: bool,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        let wait = self.rules;
        // Files of other harts cannot be read, so there is no need to ask about their vCPUs.
        let candidates = match wait.tests {
            false => self.self_wait_ready,
            true if probe.reaches_every_file() => VcpuSet::from_bits(u64::MAX),
            true => self.last_on[hart.index()].union(self.self_wait_ready),
        };
        let deaf = self.deaf.without(self.self_wait_ready);
        let candidates = self
            .queues
            .members(Queue::SelfWait)
            .intersection(candidates)
            .without(deaf);
        if candidates.is_empty() {
            return None;
        }
        // Where none can be granted a reason meanwhile, only these few have to be asked.
        if !wait.grants_all && self.self_wait_ready.is_empty() {
            let mut rest = candidates;
            while let Some((vcpu, count)) = self.first_of(rest) {
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

    /// The first in the self-wait queue of `among`, which are there, and how many these are, if that matters: who is at the
    /// queue's head is found at once.
    #[inline]
    fn first_of(&self, among: VcpuSet) -> Option<(VcpuId, usize)> {
        let head = self.queues.first(Queue::SelfWait);
        match head.filter(|&head| among.contains(head)) {
            Some(head) => Some((head, 1)),
            None => self.queues.first_to_wait(among),
        }
    }

    /// Goes through the self-wait queue, where reasons may be granted on the way.
    #[inline(never)]
    fn go_through(
        &mut self,
        hart: HartId,
        spent: bool,
        candidates: VcpuSet,
        now: Ticks,
        probe: &mut impl Probe,
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
    pub(crate) fn has_interrupt(&mut self, vcpu: VcpuId, probe: &mut impl Probe) -> bool {
        if self.self_wait_ready.contains(vcpu) {
            return true;
        }
        let wait = self.rules;
        if self.deaf.contains(vcpu) || !wait.tests || !probe.pending(vcpu) {
            return false;
        }
        if self.for_words.contains(vcpu) {
            return true;
        }
        if wait.grants_all {
            let waiting = self.queues.members(Queue::SelfWait);
            let partners = waiting.intersection(self.partners(vcpu));
            // Whoever waits for a word has no use for the interrupts of others.
            let granted = partners.without(self.for_words);
            self.self_wait_ready = self.self_wait_ready.union(granted);
        }
        true
    }
}
