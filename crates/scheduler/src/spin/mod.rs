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

use crate::choice;
use crate::config::SpinPolicy;
use crate::decision::{Keep, SpinExit};
use crate::id::{HartId, VcpuId, VcpuSet};
use crate::queue::{Queue, Queues};
use crate::table::Scheduler;
use crate::vcpu::{Phase, Word};

pub(crate) use waits::SpinWaits;

/// A spin policy.
pub(crate) trait Spin: Sync {
    /// `scene.vcpu` spins and has left its hart. `word`: the hypervisor knows the word that it waits on, and this is how
    /// it would wait for it.
    fn suspend(&self, scene: &mut Scene<'_>, word: Option<Word>) -> Suspend;

    /// Whether `vcpu`, which spins and has not left yet, keeps its hart.
    fn keep(&self, scheduler: &mut Scheduler, vcpu: VcpuId, exit: SpinExit) -> Keep {
        let _ = (scheduler, vcpu, exit);
        Keep::No
    }

    /// `scene.vcpu`, which was not in a spin wait, is dispatched: ends the spin waits of partners
    /// that this satisfies.
    fn dispatched(&self, scene: &mut Scene<'_>) {
        let _ = scene;
    }
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
        /// How.
        word: Word,
        /// The next on this hart.
        favour: Option<VcpuId>,
    },
}

/// One vCPU among its partners, the other vCPUs of its virtual machine.
pub(crate) struct Scene<'a> {
    pub(crate) vcpu: VcpuId,
    pub(crate) partners: VcpuSet,
    /// The partners that are on harts.
    pub(crate) running: VcpuSet,
    /// The partners that were preempted while in their supervisor.
    pub(crate) preempted_in_supervisor: VcpuSet,
    /// Those of them that had their interrupts closed.
    pub(crate) preempted_closed: VcpuSet,
    /// The partner that holds the lock, if it is known.
    pub(crate) holder: Option<VcpuId>,
    pub(crate) queues: &'a Queues,
    pub(crate) waits: &'a mut SpinWaits,
    /// The last that was favoured in this virtual machine.
    pub(crate) favoured: Option<VcpuId>,
}

/// [`Spin::keep`] of policies that may give the hart straight back: then the vCPU need not leave.
fn keep_if_given_back(policy: &dyn Spin, scheduler: &mut Scheduler, vcpu: VcpuId) -> Keep {
    match policy.suspend(&mut scheduler.spin_scene(vcpu), None) {
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

    /// The partner that holds the lock, if it is known and only needs a hart.
    pub(crate) fn ready_holder(&self) -> Option<VcpuId> {
        self.holder
            .filter(|&holder| self.ready_partners().contains(holder))
    }

    /// The next of those of `among` that are ready: behind the one that was favoured last, then from the beginning.
    fn next_in_turn(&self, among: VcpuSet) -> Option<VcpuId> {
        let candidates = self.ready_partners().intersection(among);
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
        if self.vm(vcpu).is_some_and(|vm| vm.dedicated) {
            return Keep::GoOn;
        }
        policy(self.config.spin).keep(self, vcpu, exit)
    }

    /// Whether a partner only needs a hart.
    pub(crate) fn a_partner_is_ready(&self, vcpu: VcpuId) -> bool {
        let partners = self.vm(vcpu).map(|vm| vm.vcpus).unwrap_or_default();
        let ready = self.queues.ready().intersection(partners);
        let ready = ready.without(VcpuSet::only(vcpu));
        !ready.without(self.spin_waits.waiting()).is_empty()
    }

    /// Whether a partner is on a hart. One that waits there does nothing for a spinner.
    pub(crate) fn a_partner_runs(&self, vcpu: VcpuId) -> bool {
        let partners = self.vm(vcpu).map(|vm| vm.vcpus).unwrap_or_default();
        partners.without(VcpuSet::only(vcpu)).iter().any(|partner| {
            let hart = self.running_on(partner);
            let run = hart.and_then(|hart| self.harts[hart.index()].run());
            run.is_some_and(|run| !run.in_place)
        })
    }

    /// `vcpu` among its partners.
    pub(crate) fn spin_scene(&mut self, vcpu: VcpuId) -> Scene<'_> {
        let mut partners = self.vm(vcpu).map(|vm| vm.vcpus).unwrap_or_default();
        partners.remove(vcpu);
        let mut running = VcpuSet::EMPTY;
        let mut preempted_in_supervisor = VcpuSet::EMPTY;
        let mut preempted_closed = VcpuSet::EMPTY;
        for partner in partners.iter() {
            let Some(entry) = &self.vcpus[partner.index()] else {
                continue;
            };
            // Whoever waits in place does nothing for a spinner.
            let does_something = |hart: HartId| {
                let run = self.harts[hart.index()].run();
                run.is_some_and(|run| !run.in_place)
            };
            match entry.phase {
                Phase::Running(hart) if does_something(hart) => running.insert(partner),
                _ => {}
            }
            if entry.preempted_in_supervisor {
                preempted_in_supervisor.insert(partner);
            }
            if entry.preempted_closed {
                preempted_closed.insert(partner);
            }
        }
        let favoured = self.vm(vcpu).and_then(|vm| vm.favoured);
        Scene {
            vcpu,
            partners,
            running,
            preempted_in_supervisor,
            preempted_closed,
            holder: None,
            queues: &self.queues,
            waits: &mut self.spin_waits,
            favoured,
        }
    }
}
