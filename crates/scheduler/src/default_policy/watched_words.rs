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

/// A wait for a word that has had so many exits was interrupted each time. The next interrupt has to wait for a service round,
/// in which whoever the vCPU waits for will have run, or until a hart has nothing else to do: where others wait for the vCPU to take its
/// interrupt, as for a function that each CPU is to carry out, they would all wait together with harts idle.
const MAX_INTERRUPTED_EXITS: u32 = 4;

impl Scheduler {
    /// True if an interrupt ends the wait for a word of a vCPU that left so.
    pub(crate) const fn is_interruptible(left: &Left) -> bool {
        left.interrupts_enabled && left.exits < MAX_INTERRUPTED_EXITS
    }

    /// `vcpu`, which spins, waits for its word or for its turn; in both cases it was perhaps woken before.
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

    /// `vcpu`, which has come here, waits for a word. A hart that rests looks at it from now on, as if the vCPU had run there last. Where none
    /// rests, the vCPU looks itself.
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

    /// Whether `vcpu`, whose interrupts are put off, hears them because a hart has nothing else to do.
    pub(crate) fn may_interrupt_on_free_hart(&self, vcpu: VcpuId) -> bool {
        let word = self.vcpus[vcpu.index()]
            .as_ref()
            .and_then(|entry| entry.word);
        word.is_some_and(|word| word.interrupts_enabled) && self.has_free_hart(vcpu)
    }

    /// Whether a vCPU waits for a word to change.
    pub(crate) fn waits_for_word(&self, vcpu: VcpuId) -> bool {
        self.word_waiters.contains(vcpu)
    }

    /// Looks at the words that vCPUs wait for, and takes the first whose time has come and who is at its place here.
    ///
    /// Others do not wait for who has no turn, and to move it costs more than it gains: where it is not at its place, it
    /// becomes ready before the others, so that the hart on which it ran last prefers it.
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
            // As below, a few are not looked for in the queue.
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

    /// Whether `hart`, which searches, or another one has nothing to do but to run `vcpu`.
    fn has_hart_for(&self, hart: HartId, vcpu: VcpuId) -> bool {
        let here = self.dispatchable_on(hart).is_empty() && self.candidates(hart).contains(vcpu);
        here || self.has_free_hart(vcpu)
    }

    /// The time in which `vcpu` is not to be interrupted is over. Whether it was woken in it.
    fn end_uninterruptible(&mut self, vcpu: VcpuId) -> bool {
        if !self.uninterruptible.contains(vcpu) {
            return false;
        }
        self.uninterruptible.remove(vcpu);
        self.vcpu_mut(vcpu)
            .is_some_and(|entry| core::mem::take(&mut entry.woken))
    }

    /// Whether `vcpu` ran last on `hart`, or where a partner runs now: who waits for each other had better run at the same
    /// time than one after the other.
    pub(crate) fn has_affinity(&self, hart: HartId, vcpu: VcpuId) -> bool {
        let Some(last) = self.last_hart(vcpu) else {
            return true;
        };
        let there = self.running(last);
        last == hart || there.is_some_and(|other| self.partners(vcpu).contains(other))
    }

    /// The vCPUs that wait for words and may run on `hart`: memory can be looked at from anywhere.
    pub(crate) fn word_waiters_on(&self, hart: HartId) -> VcpuSet {
        self.word_waiters.intersection(self.may_run[hart.index()])
    }

    /// The partners of the vCPU on `hart` that wait for words and would be next there if these had come.
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

    /// Whether the vCPU on `hart` may wait for a partner without leaving, under a policy that waits for words.
    #[must_use]
    #[inline]
    pub fn may_spin_undetected(&self, hart: HartId) -> bool {
        self.waits_for_words()
            && self.running(hart).is_some_and(|vcpu| {
                !self.has_own_hart(vcpu) && self.partners(vcpu) != VcpuSet::only(vcpu)
            })
    }

    /// Those of `waiting` that no other hart looks for, because none is free.
    #[must_use]
    pub fn unpolled(&self, waiting: VcpuSet) -> VcpuSet {
        let unpolled = |&partner: &VcpuId| !self.has_free_hart(partner);
        waiting.iter().filter(unpolled).collect()
    }

    /// `hart` is about to run somebody, and will look at words only when the slice ends. An idle hart that could run
    /// those that wait for words is to look at them instead.
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
