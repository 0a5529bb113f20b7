//! Waits for words: a spinning vCPU waits without a hart until its word has changed, and harts poll the words.
//!
//! A vCPU whose interrupts are disabled, or whose wait was interrupted often, is uninterruptible: no interrupt ends its wait.

use crate::base::choice;
use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::{Kicks, Left, Probe};
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::{Phase, Word};
use crate::policies::queues::{MAX_COMPARED, Queue};

/// Exits after which a wait for a word counts as interrupted each time. The next interrupt is deferred for a service round, in which the vCPU that
/// holds the lock will have run, or until a hart is idle: if other vCPUs wait for this one to take its interrupt, as for a cross-call, they would
/// otherwise all wait with harts idle.
const MAX_INTERRUPTED_EXITS: u32 = 4;

impl Scheduler {
    /// Returns true if an interrupt ends the wait for a word of a vCPU that left so.
    pub(crate) const fn is_interruptible(left: &Left) -> bool {
        left.interrupts_enabled && left.exits < MAX_INTERRUPTED_EXITS
    }

    /// Lets `vcpu`, which spins, wait for its word or for its turn; it may have been woken before.
    pub(crate) fn wait_for_word(
        &mut self,
        vcpu: VcpuId,
        left: &Left,
        (turn, woken): (bool, bool),
        now: Ticks,
    ) {
        let until = now + self.config.reservation_limit;
        let interruptible_from = match (left.interrupts_enabled, left.exits) {
            (false, _) => until,
            (true, ..MAX_INTERRUPTED_EXITS) => now,
            (true, _) => now + self.round(),
        };
        let uninterruptible = interruptible_from > now;
        if uninterruptible {
            self.uninterruptible.insert(vcpu);
        }
        if let Some(entry) = self.vcpu_mut(vcpu) {
            entry.phase = Phase::SelfWait;
            entry.woken = uninterruptible && woken;
            entry.word = Some(Word {
                until,
                interruptible_from,
                interrupts_enabled: left.interrupts_enabled,
                turn,
            });
        }
        self.word_waiters.insert(vcpu);
        self.queues.push_waiting(vcpu);
    }

    /// Receives `vcpu`, which another scheduler has detached while it waited for a word. An idle hart polls the word from now on, as if the vCPU had
    /// run there last. Without an idle hart, the vCPU tests the word itself.
    pub(crate) fn receive_word(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let idle_harts = self.idle.union(self.in_place);
        let Some(hart) = choice::hart(idle_harts.intersection(self.allowed(vcpu))) else {
            self.make_ready(vcpu, now);
            return Kicks::NONE;
        };
        let former = self
            .vcpu_mut(vcpu)
            .and_then(|entry| entry.last.replace(hart));
        if let Some(former) = former {
            self.last_on[former.index()].remove(vcpu);
        }
        self.last_on[hart.index()].insert(vcpu);
        self.word_waiters.insert(vcpu);
        self.uninterruptible.insert(vcpu);
        self.queues.push_waiting(vcpu);
        self.note_kick(hart);
        Kicks(HartSet::only(hart))
    }

    /// Returns true if an idle hart makes `vcpu`, whose interrupts are deferred, interruptible.
    pub(crate) fn may_interrupt_on_free_hart(&self, vcpu: VcpuId) -> bool {
        let word = self.vcpus[vcpu.index()]
            .as_ref()
            .and_then(|entry| entry.word);
        word.is_some_and(|word| word.interrupts_enabled) && self.has_free_hart(vcpu)
    }

    /// Returns true if a vCPU waits for a word.
    pub(crate) fn waits_for_word(&self, vcpu: VcpuId) -> bool {
        self.word_waiters.contains(vcpu)
    }

    /// Polls the words of waiters, and takes the first one whose wait is over and that has affinity to this hart.
    ///
    /// No vCPU queues behind a waiter at a plain word, so migrating it does not pay: without affinity it becomes ready before the others, so that its
    /// last hart prefers it.
    #[inline(never)]
    pub(crate) fn take_by_word(
        &mut self,
        hart: HartId,
        spent: bool,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        let mut rest = self.word_waiters;
        let mut cursor = self.queues.first(Queue::SelfWait);
        loop {
            // A few are found without a walk of the queue.
            let vcpu = match self.queues.first_waiting(rest)? {
                (first, count) if count <= MAX_COMPARED => first,
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
            let hears = now >= word.interruptible_from
                || word.interrupts_enabled && self.has_hart_for(hart, vcpu);
            if !(is_over || hears && self.end_uninterruptible(vcpu)) {
                continue;
            }
            if spent || !self.may_take(hart, vcpu) {
                self.make_ready(vcpu, now);
            } else if word.turn || self.has_affinity(hart, vcpu) {
                return Some(vcpu);
            } else {
                self.make_ready_early(vcpu, now);
            }
        }
    }

    /// Returns true if `hart`, which searches, or another one has nothing to do but to run `vcpu`.
    fn has_hart_for(&self, hart: HartId, vcpu: VcpuId) -> bool {
        let here = self.dispatchable_on(hart).is_empty() && self.candidates(hart).contains(vcpu);
        here || self.has_free_hart(vcpu)
    }

    /// Ends the time in which `vcpu` is uninterruptible. Returns true if it was woken meanwhile.
    fn end_uninterruptible(&mut self, vcpu: VcpuId) -> bool {
        if !self.uninterruptible.contains(vcpu) {
            return false;
        }
        self.uninterruptible.remove(vcpu);
        self.vcpu_mut(vcpu)
            .is_some_and(|entry| core::mem::take(&mut entry.woken))
    }

    /// Returns true if `vcpu` ran last on `hart`, or on a hart where a partner runs now: vCPUs that wait for each other had better run at the same time.
    pub(crate) fn has_affinity(&self, hart: HartId, vcpu: VcpuId) -> bool {
        let Some(last) = self.last_hart(vcpu) else {
            return true;
        };
        let there = self.running(last);
        last == hart || there.is_some_and(|other| self.partners(vcpu).contains(other))
    }

    /// Word waiters that may run on `hart`: any hart can poll memory.
    pub(crate) fn word_waiters_on(&self, hart: HartId) -> VcpuSet {
        self.word_waiters.intersection(self.may_run[hart.index()])
    }

    /// Partners of the vCPU on `hart` that wait for words and would be next there if their waits were over.
    #[must_use]
    #[inline]
    pub fn waiting_partners(&self, hart: HartId) -> VcpuSet {
        match self.word_waiters.is_empty() {
            true => VcpuSet::EMPTY,
            false => self.waiting_partners_on(hart),
        }
    }

    #[inline(never)]
    fn waiting_partners_on(&self, hart: HartId) -> VcpuSet {
        let Some(vcpu) = self.running(hart).filter(|&vcpu| !self.has_own_hart(vcpu)) else {
            return VcpuSet::EMPTY;
        };
        let comes_here = |&partner: &VcpuId| {
            let entry = self.vcpus[partner.index()].as_ref();
            let word = entry.and_then(|entry| entry.word);
            word.is_some_and(|word| word.turn || self.has_affinity(hart, partner))
        };
        let waiting = self.word_waiters_on(hart).intersection(self.partners(vcpu));
        waiting.iter().filter(comes_here).collect()
    }

    /// Returns true if the vCPU on `hart` may spin for a partner without trapping, under a policy that waits for words.
    #[must_use]
    #[inline]
    pub fn may_spin_undetected(&self, hart: HartId) -> bool {
        let Some(vcpu) = self.running(hart).filter(|_| self.watches_words) else {
            return false;
        };
        let entry = self.vcpus[vcpu.index()].as_ref();
        entry.is_some_and(|entry| !entry.dedicated && entry.partners != VcpuSet::only(vcpu))
    }

    /// Word waiters of `waiting` that no other hart polls, because none is idle.
    #[must_use]
    pub fn unpolled(&self, waiting: VcpuSet) -> VcpuSet {
        let unpolled = |&partner: &VcpuId| !self.has_free_hart(partner);
        waiting.iter().filter(unpolled).collect()
    }

    /// Delegates polls to an idle hart: `hart` is about to run a vCPU, and will poll its word waiters only when the slice ends.
    #[inline]
    pub(crate) fn delegate_words(&mut self, hart: HartId) -> Kicks {
        if self.word_waiters.is_empty() {
            return Kicks::NONE;
        }
        let words = self.word_waiters_on(hart).intersection(self.watched(hart));
        let Some(first) = choice::vcpu(words) else {
            return Kicks::NONE;
        };
        let idle = self.idle.union(self.in_place);
        let Some(other) = choice::hart(idle.intersection(self.allowed(first))) else {
            return Kicks::NONE;
        };
        self.note_kick(other);
        Kicks(HartSet::only(other))
    }
}
