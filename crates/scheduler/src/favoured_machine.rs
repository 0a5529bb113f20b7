//! The favoured machine: one virtual machine at a time comes first on every hart, for a slice of wall time.
//!
//! A machine whose vCPUs wait for each other at every step needs harts often, and for a moment each. Beside machines whose vCPUs do not leave it
//! comes last in every queue. So the machine that is furthest behind, by what falls to it in a slice, is favoured for a slice. A hart that looks for
//! work takes one of its vCPUs first, as long as the machine is on no more harts than fall to it by its share, and one. Others fill the gaps. Where
//! the machine is on no hart at all, a hart that fills a gap looks after two changes of vCPU whether one of its vCPUs can go on, and is given to it.
//!
//! How far a machine is behind is told by a virtual time of its own ([`crate::behind`] has another one, for two machines at a time): the time that
//! its vCPUs had harts, divided by its share, from the mean of all machines that want harts. A machine that has not gained by the favour cannot use
//! more, and what it was behind is forgotten.

use crate::behind::Pace;
use crate::choice;
use crate::decision::Probe;
use crate::id::{HartId, HartSet, VcpuId, VcpuSet, VmId, VmSet};
use crate::queue::Queue;
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::Vm;

/// A machine is favoured that is behind by what falls to it in a slice of wall time, and in so many milliseconds at most.
const BEHIND_MS: i64 = 3;
/// It has gained nothing by it where it is nearer to the mean by less than one of so many parts of what falls to it in a slice.
const GAIN: i64 = 8;
/// No machine is further behind the mean than what falls to it in so many slices.
const MOST_BEHIND: i64 = 4;
/// Nor further before it than what falls to it in so many milliseconds, or what one favour gives it where that is more: who had harts that nobody else
/// wanted does not pay for that for long.
const MOST_BEFORE_MS: i64 = 5;

/// Who is favoured, and until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FavouredMachine {
    pub(crate) vm: Option<VmId>,
    pub(crate) until: Ticks,
    /// How far the machine was from the mean when it was chosen.
    pub(crate) far: i64,
    /// On so many harts it comes first.
    pub(crate) harts: u32,
    /// They have looked for interrupts of others since then.
    pub(crate) looked: HartSet,
}

/// On how many of `harts` a machine with `share` of `shares` comes first: those that fall to it, and one.
fn harts_of_a_favour(share: u32, harts: i64, shares: i64) -> i64 {
    i64::from(share) * harts / shares.max(1) + 1
}

impl Vm {
    /// How far its virtual time is from `from`. A machine that wants no hart for days may be any number of slices from others.
    fn far_from(&self, from: u64) -> i64 {
        const MOST: i64 = 1 << 48;
        self.had.wrapping_sub(from).cast_signed().clamp(-MOST, MOST)
    }
}

impl Scheduler {
    /// A virtual time with which a machine that comes is neither behind nor before the others.
    pub(crate) fn virtual_time_of_others(&self) -> u64 {
        let other = self
            .present
            .first()
            .and_then(|vm| self.vms[vm.index()].as_ref());
        other.map_or(0, |other| other.had)
    }

    /// Chooses the favoured machine anew, where its time is over.
    #[inline]
    pub(crate) fn renew_favoured_machine(&mut self, now: Ticks) {
        if now < self.favoured_machine.until {
            return;
        }
        let before = self.favoured_machine;
        self.favoured_machine = FavouredMachine {
            vm: None,
            until: now + self.config.slice,
            far: 0,
            harts: 0,
            looked: HartSet::EMPTY,
        };
        if self.waits_for_words() && !self.own_accounts {
            self.furthest_behind(before, now);
        }
        if self.favoured_machine.vm.is_none() {
            self.favoured_machine.until = now + Ticks::new(self.config.slice.get() / 4);
        }
    }

    #[inline(never)]
    fn furthest_behind(&mut self, before: FavouredMachine, now: Ticks) {
        let wants = self
            .queues
            .ready()
            .union(self.for_words)
            .union(self.self_wait_ready)
            .union(self.working);
        // What vCPUs on harts have had since they were dispatched.
        for hart in self.shared.iter() {
            let Some(run) = self.harts[hart.index()].run() else {
                continue;
            };
            let ran = now - run.since;
            let counted = core::mem::replace(&mut self.harts[hart.index()].counted, ran);
            if let Some(vm) = self.vm_mut(run.vcpu) {
                vm.had = vm.had.wrapping_add(vm.pace.of_time(ran - counted));
            }
        }
        let wanting = |vm: &VmId| {
            self.vms[vm.index()].is_some_and(|entry| {
                !entry.dedicated && !entry.vcpus.intersection(wants).is_empty()
            })
        };
        let wanting: VmSet = self.present.iter().filter(wanting).collect();
        let mut reference = None;
        let (mut shares, mut sum, mut count) = (0_i64, 0_i64, 0);
        for vm in wanting.iter() {
            let Some(entry) = self.vms[vm.index()].as_ref() else {
                continue;
            };
            let from = *reference.get_or_insert(entry.had);
            let share = i64::from(entry.share);
            shares += share;
            sum = sum.saturating_add(entry.far_from(from).saturating_mul(share));
            count += 1;
        }
        let Some(from) = reference.filter(|_| count > 1) else {
            return;
        };
        let mean = sum / shares.max(1);
        // What falls to each in a slice of wall time.
        let harts = i64::from(self.shared.count());
        let all = u32::try_from(shares).unwrap_or(u32::MAX);
        let due = Pace::of(all).of_time(self.config.slice).cast_signed() * harts;
        let millisecond = Ticks::new(self.config.frequency / 1000);
        let due_in_ms = Pace::of(all).of_time(millisecond).cast_signed() * harts;
        let enough = due.min(BEHIND_MS * due_in_ms);
        let mut chosen = None;
        let mut least = 0;
        // Of machines that are as far behind, the one after the last favoured.
        let is_after = |vm: &VmId| before.vm.is_none_or(|last| *vm > last);
        let in_turn = wanting.iter().filter(is_after);
        for vm in in_turn.chain(wanting.iter().filter(|vm| !is_after(vm))) {
            let Some(entry) = self.vms[vm.index()].as_mut() else {
                continue;
            };
            let far = entry.far_from(from) - mean;
            let first_on = harts_of_a_favour(entry.share, harts, shares);
            let by_favour = entry.pace.of_time(self.config.slice).cast_signed() * first_on;
            let most_before = by_favour.max(MOST_BEFORE_MS * due_in_ms);
            let mut kept = far.clamp(-MOST_BEHIND * due, most_before);
            // Who has not gained by the favour cannot use more, and is not favoured for a while.
            if before.vm == Some(vm) && kept - before.far < due / GAIN {
                kept = due / 2;
            }
            entry.had = from.wrapping_add((kept + mean).cast_unsigned());
            if kept < -enough && kept < least {
                least = kept;
                chosen = Some(vm);
            }
        }
        let chosen = choice::machine(chosen, wanting);
        self.favoured_machine.vm = chosen;
        // Those whose slices have ended, and that are out of service, come next in their order: none of the machine's waits for a service round.
        let members = self.favoured_vcpus();
        self.move_members(Queue::TimeSliceEnd, members, Queue::ProperReady);
        self.move_members(Queue::OutService, members, Queue::ProperReady);
        self.favoured_machine.far = least;
        let share = chosen
            .and_then(|vm| self.vms[vm.index()].as_ref())
            .map_or(0, |vm| vm.share);
        let first_on = harts_of_a_favour(share, harts, shares);
        self.favoured_machine.harts = u32::try_from(first_on).unwrap_or(u32::MAX);
    }

    /// The vCPUs of the favoured machine.
    #[inline]
    pub(crate) fn favoured_vcpus(&self) -> VcpuSet {
        match self.favoured_machine.vm {
            Some(vm) => self.vcpus(vm),
            None => VcpuSet::EMPTY,
        }
    }

    /// The next on `hart` of the favoured machine.
    #[inline(never)]
    pub(crate) fn take_of_favoured_machine(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        let favoured = self.favoured_vcpus().intersection(self.takes(hart));
        if favoured.intersection(self.working).count() >= self.favoured_machine.harts {
            return None;
        }
        let words = self.for_words.intersection(favoured);
        let mut rest = words;
        while let Some((vcpu, _)) = self.queues.first_to_wait(rest) {
            rest.remove(vcpu);
            let word = self.vcpus[vcpu.index()].as_ref()?.word?;
            let over = now >= word.until || probe.changed(vcpu);
            if over && (word.turn || self.is_at_its_place(hart, vcpu)) {
                return Some(vcpu);
            }
            if over {
                self.make_ready_early(vcpu, now);
            }
        }
        if let Some(vcpu) = self.take_favoured_by_interrupt(hart, favoured, now, probe) {
            return Some(vcpu);
        }
        let ready = self.dispatchable_on(hart).intersection(favoured);
        if ready.is_empty() {
            return None;
        }
        if let Some(next) = self.harts[hart.index()]
            .favour
            .filter(|&vcpu| ready.contains(vcpu))
        {
            return Some(next);
        }
        self.next_of_favoured(hart, ready)
    }

    /// The first of the favoured that waits and has an interrupt. Interrupts of others are looked for once by each hart, so that it is seen who wants a hart.
    fn take_favoured_by_interrupt(
        &mut self,
        hart: HartId,
        favoured: VcpuSet,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        let files = match self.rules.tests {
            true => self.last_on[hart.index()].union(self.self_wait_ready),
            false => self.self_wait_ready,
        };
        let deaf = self.deaf.without(self.self_wait_ready);
        let waiting = self
            .queues
            .members(Queue::SelfWait)
            .intersection(files)
            .without(deaf);
        if !choice::either(self.favoured_machine.looked.contains(hart)) {
            self.favoured_machine.looked.insert(hart);
            for vcpu in waiting.without(favoured).iter() {
                if self.has_interrupt(vcpu, probe) {
                    self.make_ready(vcpu, now);
                }
            }
        }
        let mut those = waiting.intersection(favoured).iter();
        those.find(|&vcpu| self.has_interrupt(vcpu, probe))
    }

    /// The next of `ready`, in the order of the subqueues: one that ran on `hart` last, unless this would pass over somebody too often.
    fn next_of_favoured(&mut self, hart: HartId, ready: VcpuSet) -> Option<VcpuId> {
        let affinity = self.config.affinity;
        let mut first = None;
        let mut passed = VcpuSet::EMPTY;
        for queue in [Queue::ProperReady, Queue::TimeSliceEnd, Queue::OutService] {
            for vcpu in self.queues.iter(queue).filter(|&vcpu| ready.contains(vcpu)) {
                first = first.or(Some(vcpu));
                let entry = self.vcpus[vcpu.index()].as_ref();
                if entry
                    .is_some_and(|entry| entry.passed_over >= affinity || entry.last == Some(hart))
                {
                    for other in passed.iter() {
                        if let Some(entry) = self.vcpus[other.index()].as_mut() {
                            entry.passed_over = entry.passed_over.saturating_add(1);
                        }
                    }
                    return Some(vcpu);
                }
                passed.insert(vcpu);
            }
        }
        first
    }

    /// The vCPUs for which `hart` is to be freed, because they are of the favoured machine and the one on the hart is not: those that wait for words.
    #[must_use]
    pub fn favoured_words(&self, hart: HartId) -> VcpuSet {
        match self.fills(hart) {
            true => self.favoured_vcpus().intersection(self.words_for(hart)),
            false => VcpuSet::EMPTY,
        }
    }

    /// Whether one of the favoured machine is ready for `hart`, whose vCPU is of another.
    #[must_use]
    pub fn favoured_is_ready(&self, hart: HartId) -> bool {
        self.fills(hart)
            && !self
                .dispatchable_on(hart)
                .intersection(self.favoured_vcpus())
                .is_empty()
    }

    /// Whether the vCPU on `hart` fills a gap that the favoured machine leaves.
    #[must_use]
    pub fn fills(&self, hart: HartId) -> bool {
        let Some(vm) = self.favoured_machine.vm else {
            return false;
        };
        self.running(hart).is_some_and(|vcpu| {
            !self.has_own_hart(vcpu)
                && self.vm_of(vcpu) != Some(vm)
                && !self
                    .favoured_vcpus()
                    .intersection(self.takes(hart))
                    .is_empty()
                && self.favoured_vcpus().intersection(self.working).is_empty()
        })
    }
}
