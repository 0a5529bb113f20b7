//! The search: whom a hart finds to run next, in the self-wait queue and then in the ready queue.

use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::Probe;
use crate::dispatch::table::Scheduler;
use crate::policies::queues::{MAX_COMPARED, Queue};

impl Scheduler {
    /// Chooses who is next on `hart`, which searches.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        self.renew_boost(now);
        if self.vm_boost.vm.is_some()
            && let Some(vcpu) = self.take_boosted(hart, now, probe)
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
        if let Some(vcpu) = self.pending_preemption(hart) {
            return Some(vcpu);
        }
        if let Some(vcpu) = self.harts[hart.index()].next.filter(is_next) {
            return Some(vcpu);
        }
        let skip = self.harts[hart.index()].skip;
        self.next_ready(hart, skip)
            .or_else(|| skip.and_then(|_| self.next_ready(hart, None)))
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
        let by_word = match self.word_waiters.is_empty() {
            true => None,
            false => self.take_by_word(hart, spent, now, probe),
        };
        by_word.or_else(|| self.take_by_interrupt(hart, spent, now, probe))
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
        let uninterruptible = self.uninterruptible.without(self.self_wait_ready);
        let candidates = self
            .queues
            .members(Queue::SelfWait)
            .intersection(candidates)
            .without(uninterruptible);
        if candidates.is_empty() {
            return None;
        }
        // Where none can be granted a reason meanwhile, only these few have to be asked.
        if !wait.grants_all && self.self_wait_ready.is_empty() {
            let mut rest = candidates;
            while let Some((vcpu, count)) = self.first_of(rest) {
                if count > MAX_COMPARED {
                    return self.scan_self_wait(hart, spent, candidates, now, probe);
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
        self.scan_self_wait(hart, spent, candidates, now, probe)
    }

    /// The first in the self-wait queue of `among`, which are there, and how many these are, if that matters: who is at the
    /// queue's head is found at once.
    #[inline]
    fn first_of(&self, among: VcpuSet) -> Option<(VcpuId, usize)> {
        let head = self.queues.first(Queue::SelfWait);
        match head.filter(|&head| among.contains(head)) {
            Some(head) => Some((head, 1)),
            None => self.queues.first_waiting(among),
        }
    }

    /// Goes through the self-wait queue, where reasons may be granted on the way.
    #[inline(never)]
    fn scan_self_wait(
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
    pub(crate) fn may_take(&self, hart: HartId, vcpu: VcpuId) -> bool {
        self.candidates(hart).contains(vcpu) && !self.is_out_of_service(vcpu)
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
        if self.uninterruptible.contains(vcpu) || !wait.tests || !probe.pending(vcpu) {
            return false;
        }
        if self.word_waiters.contains(vcpu) {
            return true;
        }
        if wait.grants_all {
            let waiting = self.queues.members(Queue::SelfWait);
            let partners = waiting.intersection(self.partners(vcpu));
            // Whoever waits for a word has no use for the interrupts of others.
            let granted = partners.without(self.word_waiters);
            self.self_wait_ready = self.self_wait_ready.union(granted);
        }
        true
    }
}
