//! Spin policies: what becomes of a vCPU that leaves because it spins.
//!
//! Each policy is one file with one type that implements [`Spin`], and one line in [`policy`].

mod directed;
mod none;
mod not_same;
mod reservation;
mod rslp;
mod waits;
mod wapd;
mod wopd;
mod yielding;

use crate::choice;
use crate::config::SpinPolicy;
use crate::decision::{Keep, SpinExit};
use crate::id::{HartId, VcpuId, VcpuSet};
use crate::queue::{Queue, Queues};
use crate::table::Scheduler;

pub(crate) use waits::SpinWaits;

/// A spin policy.
pub(crate) trait Spin: Sync {
    /// `scene.vcpu` spins and has left its hart.
    fn suspend(&self, scene: &mut Scene<'_>, known: Known) -> Suspend;

    /// Whether `vcpu`, which spins and has not left yet, keeps its hart.
    fn keep(&self, scheduler: &mut Scheduler, vcpu: VcpuId, exit: SpinExit) -> Keep {
        let _ = (scheduler, vcpu, exit);
        Keep::No
    }

    /// Whether it makes use of what is [`Known`].
    fn waits_for_words(&self) -> bool {
        false
    }

    /// `scene.vcpu`, which was not in a spin wait, is dispatched: ends the spin waits of partners
    /// that this satisfies.
    fn dispatched(&self, scene: &mut Scene<'_>) {
        let _ = scene;
    }
}

/// What the hypervisor knows of a spin for which the vCPU could wait without running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Nothing,
    /// The word that is to change.
    Word,
    /// The word that will show the vCPU's turn at a lock that is first come, first served.
    Turn,
}

/// What becomes of the vCPU that spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspend {
    /// It goes on with the rest of its slice.
    GoOn,
    /// It is ready, last in this subqueue.
    Requeue(Queue),
    /// It is in a spin wait until these partners, which are dispatchable, have been dispatched.
    Wait(VcpuSet),
    /// It is ready, but not the next on this hart if anybody else can be.
    GiveWay,
    /// It is ready, and this partner is the next on this hart.
    Favour(VcpuId),
    /// It waits for its word.
    WaitForWord {
        /// The next on this hart.
        favour: Option<VcpuId>,
    },
}

/// One vCPU among its partners, the other vCPUs of its virtual machine.
pub(crate) struct Scene<'a> {
    pub(crate) vcpu: VcpuId,
    pub(crate) partners: VcpuSet,
    /// The partners that are on harts, and do not wait there.
    pub(crate) working: VcpuSet,
    /// The partners that were preempted while in their supervisor.
    pub(crate) preempted_in_supervisor: VcpuSet,
    /// Those of them that had their interrupts closed.
    pub(crate) preempted_closed: VcpuSet,
    /// The partners that gave way at a spin in their supervisor.
    pub(crate) gave_way_in_supervisor: VcpuSet,
    /// The partner that holds the lock, if it is known.
    pub(crate) holder: Option<VcpuId>,
    pub(crate) queues: &'a Queues,
    pub(crate) waits: &'a mut SpinWaits,
    /// The last that was favoured in this virtual machine.
    pub(crate) favoured: Option<VcpuId>,
}

/// [`Spin::keep`] of policies that may give the hart straight back: then the vCPU need not leave.
fn keep_if_given_back(policy: &dyn Spin, scheduler: &mut Scheduler, vcpu: VcpuId) -> Keep {
    match policy.suspend(&mut scheduler.spin_scene(vcpu), Known::Nothing) {
        Suspend::GoOn => Keep::GoOn,
        _ => Keep::No,
    }
}

impl Scene<'_> {
    /// The next of the ready partners that were preempted in their supervisor.
    pub(crate) fn preempted_partner(&self) -> Option<VcpuId> {
        self.next_in_turn(self.preempted_in_supervisor)
    }

    /// The next of those that were preempted with their interrupts closed: probably in the middle of something short.
    pub(crate) fn preempted_closed_partner(&self) -> Option<VcpuId> {
        self.next_in_turn(self.preempted_closed)
    }

    /// The next of the ready partners that gave way at a spin in their supervisor.
    pub(crate) fn partner_that_gave_way(&self) -> Option<VcpuId> {
        self.next_in_turn(self.gave_way_in_supervisor)
    }

    /// The partner that holds the lock, if it is known and only needs a hart.
    pub(crate) fn ready_holder(&self) -> Option<VcpuId> {
        self.holder
            .filter(|&holder| self.ready_partners().contains(holder))
    }

    /// The next of those of `among` that are ready: behind the one that was favoured last, then from the beginning.
    fn next_in_turn(&self, among: VcpuSet) -> Option<VcpuId> {
        let candidates = self.ready_partners().intersection(among);
        if candidates.is_empty() {
            return None;
        }
        let after: VcpuSet = candidates
            .iter()
            .filter(|&vcpu| Some(vcpu) > self.favoured)
            .collect();
        choice::next_of(after, candidates)
    }

    /// The partners that are ready and not in a spin wait. Only these may be waited for: they need
    /// nothing but a hart, so nobody waits in a circle.
    pub(crate) fn ready_partners(&self) -> VcpuSet {
        self.queues
            .ready()
            .intersection(self.partners)
            .without(self.waits.waiting())
    }
}

/// The policy of this name.
pub(crate) fn policy(name: SpinPolicy) -> &'static dyn Spin {
    match name {
        SpinPolicy::None => &none::GoOn,
        SpinPolicy::Wopd => &wopd::OnePartner,
        SpinPolicy::Wapd => &wapd::AllPartners,
        SpinPolicy::Rslp => &rslp::Requeue,
        SpinPolicy::Yield => &yielding::Yield,
        SpinPolicy::NotSame => &not_same::NotSame,
        SpinPolicy::Directed => &directed::Directed,
        SpinPolicy::Reservation => &reservation::Reservation,
    }
}

impl Scheduler {
    /// Whether the vCPU on `hart`, which spins, keeps it. Whoever does not must leave.
    #[must_use]
    pub fn keeps(&mut self, hart: HartId, exit: SpinExit) -> Keep {
        let Some(vcpu) = self.running(hart) else {
            return Keep::No;
        };
        if self.has_own_hart(vcpu) {
            return Keep::GoOn;
        }
        policy(self.config.spin).keep(self, vcpu, exit)
    }

    /// Whether a partner only needs a hart.
    pub(crate) fn a_partner_is_ready(&self, vcpu: VcpuId) -> bool {
        let ready = self.queues.ready().intersection(self.partners(vcpu));
        let ready = ready.without(VcpuSet::only(vcpu));
        !ready.without(self.spin_waits.waiting()).is_empty()
    }

    /// Whether a partner works on a hart. One that waits there does nothing for a spinner.
    pub(crate) fn a_partner_works(&self, vcpu: VcpuId) -> bool {
        let working = self.working.intersection(self.partners(vcpu));
        !working.without(VcpuSet::only(vcpu)).is_empty()
    }

    /// `vcpu` among its partners.
    #[inline]
    pub(crate) fn spin_scene(&mut self, vcpu: VcpuId) -> Scene<'_> {
        let partners = self.partners(vcpu).without(VcpuSet::only(vcpu));
        let favoured = self.vm(vcpu).and_then(|vm| vm.favoured);
        Scene {
            vcpu,
            partners,
            working: self.working.intersection(partners),
            preempted_in_supervisor: self.preempted_in_supervisor.intersection(partners),
            preempted_closed: self.preempted_closed.intersection(partners),
            gave_way_in_supervisor: self.gave_way_in_supervisor.intersection(partners),
            holder: None,
            queues: &self.queues,
            waits: &mut self.spin_waits,
            favoured,
        }
    }
}
