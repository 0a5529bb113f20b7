//! Who is behind: a vCPU that is woken does not wait for the end of a slice of a virtual machine that has had more.
//!
//! Accounts of service ([`crate::service`]) keep shares over rounds. Within a round whoever has a hart keeps it to the end of a slice, so that a
//! machine which needs little, and often, would wait for a slice each time. So each virtual machine has a virtual time besides: the time
//! that its vCPUs had harts, divided by its share. Two machines are compared when a vCPU of one is woken and the other one has its hart, and are two slices
//! apart at most from then on: neither sleep nor work in an empty computer counts for ever.

use crate::choice;
use crate::decision::{Kicks, Left};
use crate::hart::Run;
use crate::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::queue::Queue;
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::Vm;

/// Two virtual machines are at most so many slices apart.
const MOST_SLICES: u64 = 2;
/// Who is behind by so many does not wait. Machines that want the same are less apart most of the time, and gain nothing by taking each other's harts.
const LEAST_SLICES: u64 = 1;

/// A point in virtual time. It wraps: where two machines are not compared for days, one counts as any number of slices from the other, and is
/// brought to two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct VirtualTime(u64);

/// What a tick with a hart is in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pace(u32);

impl Pace {
    /// The larger the share, the slower.
    pub(crate) const fn of(share: u32) -> Self {
        // So that shares of up to a thousand are met to some hundredths.
        const FINE: u32 = 1 << 16;
        Self(FINE.div_ceil(if share == 0 { 1 } else { share }))
    }

    pub(crate) const fn of_time(self, ran: Ticks) -> u64 {
        ran.get().wrapping_mul(self.0 as u64)
    }
}

impl VirtualTime {
    pub(crate) const START: Self = Self(0);

    const fn after(self, more: u64) -> Self {
        Self(self.0.wrapping_add(more))
    }

    /// How far `self` is after `other`; negative where it is before it.
    const fn since(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0).cast_signed()
    }
}

impl Vm {
    /// One of its vCPUs has had a hart for `ran`.
    #[inline]
    pub(crate) const fn note_stay(&mut self, ran: Ticks) {
        self.stayed = self.stayed.after(self.pace.of_time(ran));
    }

    /// It goes to where it is at most two slices before `other`.
    fn come_near(&mut self, other: VirtualTime, slice: Ticks) {
        let most = Ticks::new(slice.get().saturating_mul(MOST_SLICES));
        let most = self.pace.of_time(most);
        let behind = other.since(self.stayed);
        if u64::try_from(behind).is_ok_and(|behind| behind > most) {
            self.stayed = VirtualTime(other.0.wrapping_sub(most));
        }
    }
}

impl Scheduler {
    /// A vCPU that hurried has left, and pays for both changes, so that nobody keeps others from their harts by waking again and again.
    #[cold]
    #[inline(never)]
    pub(crate) fn pay_for_hurry(&mut self, run: Run, left: &Left) {
        if let Some(vm) = self.vm_mut(run.vcpu) {
            vm.note_stay(left.change);
            vm.had = vm.had.wrapping_add(vm.pace.of_time(left.change));
        }
    }

    /// Whether the virtual machine of `vcpu` is behind the one that has had a hart for `ran` by `run`.
    fn is_behind(&mut self, vcpu: VcpuId, run: Run, ran: Ticks) -> bool {
        let ids = [vcpu, run.vcpu].map(|vcpu| self.vcpus[vcpu.index()].as_ref());
        let [Some(mine), Some(theirs)] = ids.map(|entry| entry.map(|entry| entry.vm.index()))
        else {
            return false;
        };
        let slice = self.config.slice;
        let Ok([Some(mine), Some(theirs)]) = self.vms.get_disjoint_mut([mine, theirs]) else {
            // They are partners.
            return false;
        };
        if mine.dedicated || theirs.dedicated {
            return false;
        }
        theirs.come_near(mine.stayed, slice);
        let now = theirs.stayed.after(theirs.pace.of_time(ran));
        mine.come_near(now, slice);
        let enough = mine
            .pace
            .of_time(Ticks::new(slice.get().saturating_mul(LEAST_SLICES)));
        let behind = now.since(mine.stayed);
        choice::either(u64::try_from(behind).is_ok_and(|behind| behind >= enough))
    }

    /// The hart that `vcpu` takes from another vCPU if it is woken now: the one on which it ran last, where no hart is free, nobody hurries there, and its
    /// machine is behind.
    fn would_hurry(&mut self, vcpu: VcpuId, now: Ticks) -> Option<HartId> {
        let hart = self.last_hart(vcpu).filter(|_| self.rules.hurries)?;
        let run = self.harts[hart.index()].run()?;
        let free = self.searching.union(self.idle).union(self.in_place);
        let is_free = !free.intersection(self.may_dispatch(vcpu)).is_empty();
        let behind = !is_free
            && self.takes(hart).contains(vcpu)
            && !self.is_out_of_service(vcpu)
            && self.next_by_hurry(hart).is_none()
            && (self.fills(hart) && self.favoured_vcpus().contains(vcpu)
                || self.is_behind(vcpu, run, now - run.since));
        behind.then_some(hart)
    }

    /// `vcpu` was woken. Where it hurries, it is the next on its last hart, and at once.
    pub(crate) fn hurry(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let ready = self.queues.ready().contains(vcpu);
        let Some(hart) = self.would_hurry(vcpu, now).filter(|_| ready) else {
            return Kicks::NONE;
        };
        self.hurrying.insert(hart);
        self.hurried[hart.index()] = Some(vcpu);
        Kicks(HartSet::only(hart))
    }

    /// An interrupt of `vcpu`, which waits, has interrupted the hypervisor. Where waiting vCPUs are found by tests, it is woken only if it hurries: else
    /// it stays where its hart finds it, and no other hart takes it away from there.
    pub fn hear(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let waits = self.queues.holding(vcpu) == Some(Queue::SelfWait);
        match !self.rules.tests || waits && self.would_hurry(vcpu, now).is_some() {
            true => self.wake(vcpu, now),
            false => Kicks::NONE,
        }
    }

    /// The vCPU to which the one on `hart` has to give way, because it hurries.
    #[inline]
    pub(crate) fn next_by_hurry(&self, hart: HartId) -> Option<VcpuId> {
        match self.hurrying.contains(hart) {
            true => self.hurried[hart.index()].filter(|&vcpu| self.comes_at_once(hart, vcpu)),
            false => None,
        }
    }

    /// Nobody hurries on `hart` from now on. Whoever did.
    #[inline]
    pub(crate) fn end_hurry(&mut self, hart: HartId) -> Option<VcpuId> {
        if !self.hurrying.contains(hart) {
            return None;
        }
        self.hurrying.remove(hart);
        self.hurried[hart.index()].take()
    }

    /// These are gone.
    pub(crate) fn forget_hurry(&mut self, vcpus: VcpuSet) {
        for hart in self.hurrying.iter() {
            if self.hurried[hart.index()].is_some_and(|vcpu| vcpus.contains(vcpu)) {
                let _ = self.end_hurry(hart);
            }
        }
    }

    fn comes_at_once(&self, hart: HartId, vcpu: VcpuId) -> bool {
        self.dispatchable_on(hart).contains(vcpu) && !self.is_out_of_service(vcpu)
    }

    /// The vCPUs that wait on `hart` for nothing but interrupts and whose machines are behind the one that has it now. An interrupt for one of
    /// them is to interrupt the hypervisor, which wakes it.
    #[must_use]
    #[inline]
    pub fn to_be_heard(&mut self, hart: HartId) -> VcpuSet {
        let watched = self.watched(hart).without(self.for_words);
        match watched.is_empty() || !self.rules.hurries {
            true => VcpuSet::EMPTY,
            false => self.behind_among(watched, hart),
        }
    }

    #[inline(never)]
    fn behind_among(&mut self, watched: VcpuSet, hart: HartId) -> VcpuSet {
        let Some(run) = self.harts[hart.index()].run() else {
            return VcpuSet::EMPTY;
        };
        let behind = |&vcpu: &VcpuId| self.is_behind(vcpu, run, Ticks::ZERO);
        watched.iter().filter(behind).collect()
    }
}
