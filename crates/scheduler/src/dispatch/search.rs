//! Search of a hart for its next vCPU: in the self-wait queue, then in the ready queue.

use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::Probe;
use crate::dispatch::table::Scheduler;
use crate::policies::queues::{MAX_COMPARED, Queue};

impl Scheduler {
    /// Chooses the next vCPU of `hart`, which searches.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        if self.is_column(hart) {
            return self.choose_by_slot(hart, now, probe);
        }
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
        // No other vCPU can come out of the ready queue.
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
        let skipped = skip.map_or(VcpuSet::EMPTY, VcpuSet::only);
        self.next_ready(hart, dispatchable.without(skipped))
            .or_else(|| skip.and_then(|_| self.next_ready(hart, dispatchable)))
    }

    /// First self-waiting vCPU that may continue and may run here (paper 002 §3.4): one whose turn at a lock has come goes before one with an
    /// interrupt, because other waiters queue behind it.
    ///
    /// Other vCPUs that may continue become ready, if their VM is out of service, they may not run here, or this hart has spent its budget while
    /// others are ready.
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
        // Files of other harts cannot be read, so their vCPUs are not tested.
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
        // If no interrupt can be granted meanwhile, only these few have to be tested.
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

    /// First of `among` in the self-wait queue, and their number if that matters: the head of the queue is found at once.
    #[inline]
    fn first_of(&self, among: VcpuSet) -> Option<(VcpuId, usize)> {
        let head = self.queues.first(Queue::SelfWait);
        match head.filter(|&head| among.contains(head)) {
            Some(head) => Some((head, 1)),
            None => self.queues.first_waiting(among),
        }
    }

    /// Walks the self-wait queue, in which interrupts may be granted on the way.
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

    /// First self-waiting vCPU that may run here and was granted the interrupt of a partner.
    fn first_granted(&self, hart: HartId) -> Option<VcpuId> {
        let granted = self
            .self_wait_ready
            .intersection(self.may_run[hart.index()]);
        self.queues
            .iter(Queue::SelfWait)
            .find(|&vcpu| granted.contains(vcpu))
    }

    /// Returns true if a self-waiting vCPU has an interrupt that ends its wait; then partners may be granted it.
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
            // A waiter at a word has no use for the interrupts of partners.
            let granted = partners.without(self.word_waiters);
            self.self_wait_ready = self.self_wait_ready.union(granted);
        }
        true
    }
}
