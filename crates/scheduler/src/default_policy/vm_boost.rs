//! VM boost: the VM with the largest lag comes first on every hart for a slice of wall time.
//!
//! A VM whose vCPUs wait for each other at every step needs harts often and briefly. Beside VMs whose vCPUs do not leave, it comes last in every
//! queue. So the VM that lags most, by at least its entitlement in a slice, is boosted for a slice. A hart that searches takes one of its vCPUs
//! first, as long as the VM is on no more harts than its share entitles it to, plus one. Other VMs fill the gaps. If the VM is on no hart at all, a
//! hart that fills a gap polls after two context switches whether one of its vCPUs can run, and switches to it.
//!
//! Lag is measured against the mean virtual time of all VMs that want harts. This virtual time is not the one of wake-up preemption, which compares
//! two VMs. A VM that has not gained by its boost cannot use more time, and its lag is forgotten.

use crate::base::choice;
use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet, VmId, VmSet};
use crate::base::ticks::Ticks;
use crate::decision::Probe;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Vm;
use crate::policies::queues::Queue;
use crate::policies::virtual_time::InverseWeight;
use crate::policies::vm_boost::VmBoost;

/// Least lag of a boosted VM: its entitlement in a slice of wall time, at most in this time.
const MIN_LAG_MS: i64 = 3;
/// Least gain by a boost, as an inverse part of the entitlement in a slice. A VM that gained less cannot use more time.
const MIN_GAIN_DIVISOR: i64 = 8;
/// Bound on the lag, as entitlement in slices.
const MAX_LAG_SLICES: i64 = 4;
/// Bound on the lead over the mean: entitlement in this time, or one boost. A VM that used idle harts does not pay for them for long.
const MAX_LEAD_MS: i64 = 5;

/// Harts of `harts` on which a VM with `share` of `shares` comes first: its entitlement, plus one.
fn boosted_harts(share: u32, harts: i64, shares: i64) -> i64 {
    i64::from(share) * harts / shares.max(1) + 1
}

/// VMs that want harts, and their mean.
struct Demand {
    vms: VmSet,
    /// Virtual time of the first VM, which others are compared with.
    reference: u64,
    /// Mean lead over the reference.
    mean: i64,
    /// Sum of the shares.
    shares: i64,
}

impl Vm {
    /// Lead of the VM's virtual time over `reference`. A VM that wants no hart for days may be any number of slices away.
    fn lead_over(&self, reference: u64) -> i64 {
        const MAX: i64 = 1 << 48;
        self.boost_vruntime
            .wrapping_sub(reference)
            .cast_signed()
            .clamp(-MAX, MAX)
    }
}

impl Scheduler {
    /// Virtual time for a VM that arrives: it neither lags nor leads.
    pub(crate) fn vruntime_of_others(&self) -> u64 {
        let other = self
            .present
            .first()
            .and_then(|vm| self.vms[vm.index()].as_ref());
        other.map_or(0, |other| other.boost_vruntime)
    }

    /// Chooses the boosted VM anew if its time is over.
    #[inline]
    pub(crate) fn renew_boost(&mut self, now: Ticks) {
        if now < self.vm_boost.until {
            return;
        }
        let before = self.vm_boost;
        self.vm_boost = VmBoost {
            vm: None,
            until: now + self.config.slice,
            lag: 0,
            max_harts: 0,
            tested: HartSet::EMPTY,
        };
        if self.waits_for_words() && !self.per_vcpu_accounts {
            self.boost_most_lagging(before, now);
        }
        if self.vm_boost.vm.is_none() {
            self.vm_boost.until = now + Ticks::new(self.config.slice.get() / 4);
        }
    }

    #[inline(never)]
    fn boost_most_lagging(&mut self, before: VmBoost, now: Ticks) {
        let Some(demand) = self.demand(now) else {
            return;
        };
        let Demand {
            vms,
            reference,
            mean,
            shares,
        } = demand;
        // Entitlement of each VM in a slice of wall time.
        let harts = i64::from(self.shared.count());
        let weight = InverseWeight::of(u32::try_from(shares).unwrap_or(u32::MAX));
        let in_slice = weight.vruntime(self.config.slice).cast_signed() * harts;
        let in_ms = weight.vruntime(self.millisecond).cast_signed() * harts;
        let min_lag = in_slice.min(MIN_LAG_MS * in_ms);
        let mut chosen = None;
        let mut largest = 0;
        // Of VMs with the same lag, the one after the last boosted.
        let is_after = |vm: VmId| before.vm.is_none_or(|last| vm > last);
        for vm in vms.iter() {
            let Some(entry) = self.vms[vm.index()].as_mut() else {
                continue;
            };
            let max_harts = boosted_harts(entry.share, harts, shares);
            let boost = entry
                .inverse_weight
                .vruntime(self.config.slice)
                .cast_signed()
                * max_harts;
            let max_lead = boost.max(MAX_LEAD_MS * in_ms);
            let lag = mean - entry.lead_over(reference);
            let mut lag = lag.clamp(-max_lead, MAX_LAG_SLICES * in_slice);
            if before.vm == Some(vm) && before.lag - lag < in_slice / MIN_GAIN_DIVISOR {
                // It cannot use more time, and is not boosted for a while.
                lag = -(in_slice / 2);
            }
            entry.boost_vruntime = reference.wrapping_add((mean - lag).cast_unsigned());
            let is_next = lag > largest
                || lag == largest && is_after(vm) && chosen.is_some_and(|other| !is_after(other));
            if lag > min_lag && is_next {
                largest = lag;
                chosen = Some(vm);
            }
        }
        let Some(chosen) = choice::vm(chosen, vms) else {
            return;
        };
        self.vm_boost.vm = Some(chosen);
        // vCPUs of the VM whose slices have ended, and those out of service, come next in their order: none waits for a service round.
        let members = self.boosted_vcpus();
        self.move_members(Queue::TimeSliceEnd, members, Queue::ProperReady);
        self.move_members(Queue::OutService, members, Queue::ProperReady);
        self.vm_boost.lag = largest;
        let share = self.share(chosen);
        let max_harts = boosted_harts(share, harts, shares);
        self.vm_boost.max_harts = u32::try_from(max_harts).unwrap_or(u32::MAX);
    }

    /// VMs that want harts, if there are two at least. Accounts the time of running vCPUs first.
    fn demand(&mut self, now: Ticks) -> Option<Demand> {
        let wants = self
            .queues
            .ready()
            .union(self.word_waiters)
            .union(self.self_wait_ready)
            .union(self.executing);
        for hart in self.shared.iter() {
            let Some(run) = self.harts[hart.index()].run() else {
                continue;
            };
            let ran = now - run.since;
            let accounted = core::mem::replace(&mut self.harts[hart.index()].boost_accounted, ran);
            if let Some(vm) = self.vm_mut(run.vcpu) {
                vm.boost_vruntime = vm
                    .boost_vruntime
                    .wrapping_add(vm.inverse_weight.vruntime(ran - accounted));
            }
        }
        let mut vms = VmSet::EMPTY;
        let mut reference = None;
        let (mut shares, mut sum, mut count) = (0_i64, 0_i64, 0);
        for vm in self.present.iter() {
            let Some(entry) = self.vms[vm.index()].as_ref() else {
                continue;
            };
            if entry.dedicated || entry.vcpus.intersection(wants).is_empty() {
                continue;
            }
            vms.insert(vm);
            let from = *reference.get_or_insert(entry.boost_vruntime);
            let share = i64::from(entry.share);
            shares += share;
            sum = sum.saturating_add(entry.lead_over(from).saturating_mul(share));
            count += 1;
        }
        let reference = reference.filter(|_| count > 1)?;
        Some(Demand {
            vms,
            reference,
            mean: sum / shares.max(1),
            shares,
        })
    }

    /// vCPUs of the boosted VM.
    #[inline]
    pub(crate) fn boosted_vcpus(&self) -> VcpuSet {
        match self.vm_boost.vm {
            Some(vm) => self.vcpus(vm),
            None => VcpuSet::EMPTY,
        }
    }

    /// Next vCPU of the boosted VM on `hart`.
    #[inline(never)]
    pub(crate) fn take_boosted(
        &mut self,
        hart: HartId,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        let boosted = self.boosted_vcpus().intersection(self.candidates(hart));
        if boosted.intersection(self.executing).count() >= self.vm_boost.max_harts {
            return None;
        }
        let words = self.word_waiters.intersection(boosted);
        let mut rest = words;
        while let Some((vcpu, _)) = self.queues.first_waiting(rest) {
            rest.remove(vcpu);
            let word = self.vcpus[vcpu.index()].as_ref()?.word?;
            let over = now >= word.until || probe.changed(vcpu);
            if over && (word.turn || self.has_affinity(hart, vcpu)) {
                return Some(vcpu);
            }
            if over {
                self.make_ready_early(vcpu, now);
            }
        }
        if let Some(vcpu) = self.take_boosted_by_interrupt(hart, boosted, now, probe) {
            return Some(vcpu);
        }
        let ready = self.dispatchable_on(hart).intersection(boosted);
        if ready.is_empty() {
            return None;
        }
        if let Some(next) = self.harts[hart.index()]
            .next
            .filter(|&vcpu| ready.contains(vcpu))
        {
            return Some(next);
        }
        self.next_boosted(hart, ready)
    }

    /// First waiting vCPU of the boosted VM that has an interrupt. Each hart tests the waiting vCPUs of other VMs once, so that the demand of these VMs
    /// is known.
    fn take_boosted_by_interrupt(
        &mut self,
        hart: HartId,
        boosted: VcpuSet,
        now: Ticks,
        probe: &mut impl Probe,
    ) -> Option<VcpuId> {
        let files = match self.rules.tests {
            true => self.last_on[hart.index()].union(self.self_wait_ready),
            false => self.self_wait_ready,
        };
        let uninterruptible = self.uninterruptible.without(self.self_wait_ready);
        let waiting = self
            .queues
            .members(Queue::SelfWait)
            .intersection(files)
            .without(uninterruptible);
        if !choice::either(self.vm_boost.tested.contains(hart)) {
            self.vm_boost.tested.insert(hart);
            for vcpu in waiting.without(boosted).iter() {
                if self.has_interrupt(vcpu, probe) {
                    self.make_ready(vcpu, now);
                }
            }
        }
        let mut those = waiting.intersection(boosted).iter();
        those.find(|&vcpu| self.has_interrupt(vcpu, probe))
    }

    /// Next of `ready` in the order of the subqueues: one that ran on `hart` last, unless another one has been passed over too often.
    fn next_boosted(&mut self, hart: HartId, ready: VcpuSet) -> Option<VcpuId> {
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

    /// vCPUs of the boosted VM that wait for words and for which `hart`, whose vCPU is of another VM, is to be freed.
    #[must_use]
    pub fn boosted_words(&self, hart: HartId) -> VcpuSet {
        match self.fills_gap(hart) {
            true => self
                .boosted_vcpus()
                .intersection(self.word_waiters_on(hart)),
            false => VcpuSet::EMPTY,
        }
    }

    /// Returns true if a vCPU of the boosted VM is ready for `hart`, whose vCPU is of another VM.
    #[must_use]
    pub fn boosted_is_ready(&self, hart: HartId) -> bool {
        self.fills_gap(hart)
            && !self
                .dispatchable_on(hart)
                .intersection(self.boosted_vcpus())
                .is_empty()
    }

    /// Returns true if the vCPU on `hart` fills a gap that the boosted VM leaves.
    #[must_use]
    pub fn fills_gap(&self, hart: HartId) -> bool {
        let Some(vm) = self.vm_boost.vm else {
            return false;
        };
        self.running(hart).is_some_and(|vcpu| {
            !self.has_own_hart(vcpu)
                && self.vm_of(vcpu) != Some(vm)
                && !self
                    .boosted_vcpus()
                    .intersection(self.candidates(hart))
                    .is_empty()
                && self.boosted_vcpus().intersection(self.executing).is_empty()
        })
    }
}
