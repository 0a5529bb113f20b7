//! Interface of a spin policy.

use crate::base::choice;
use crate::base::id::{VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::policies::queues::{Queue, Queues};
use crate::policies::spin::exit::{Keep, SpinExit};
use crate::policies::spin_waits::SpinWaits;

/// A spin policy. It has no state: the scene and its answers are all that it has.
pub(crate) trait SpinRule: Sync {
    /// Decides what becomes of `scene.vcpu`, which spins and has left its hart.
    fn suspend(&self, scene: &mut Scene<'_>, known: KnownWait) -> Suspend;

    /// Decides whether `scene.vcpu`, which spins and has not left yet, keeps its hart.
    fn keep(&self, scene: &mut Scene<'_>, exit: SpinExit) -> Keep {
        let _ = (scene, exit);
        Keep::No
    }

    /// Returns true if the policy uses [`KnownWait`].
    fn waits_for_words(&self) -> bool {
        false
    }

    /// Ends the spin waits of partners that the dispatch of `scene.vcpu`, which was in no spin wait, satisfies.
    fn dispatched(&self, scene: &mut Scene<'_>) {
        let _ = scene;
    }
}

/// Knowledge of a spin for which the vCPU could wait without a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownWait {
    None,
    /// A change of a word.
    Word,
    /// The vCPU's turn at a lock that is first come, first served.
    Turn,
}

/// Decision on a vCPU that spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspend {
    /// The vCPU continues with the rest of its slice.
    Continue,
    /// The vCPU is ready, last in this subqueue.
    Requeue(Queue),
    /// The vCPU is in a spin wait until these partners, which are dispatchable, have been dispatched.
    Wait(VcpuSet),
    /// The vCPU is ready, but not the next on this hart if another vCPU can be.
    Skip,
    /// The vCPU is ready, and this partner is the next on this hart.
    YieldTo(VcpuId),
    /// The vCPU waits for its word.
    WaitForWord {
        /// Next vCPU on this hart.
        yield_to: Option<VcpuId>,
    },
}

/// One vCPU among its partners, the other vCPUs of its VM.
pub(crate) struct Scene<'a> {
    pub(crate) vcpu: VcpuId,
    pub(crate) partners: VcpuSet,
    /// Partners that are on harts and do not wait there. One that waits in place holds no lock.
    pub(crate) executing: VcpuSet,
    /// Partners that were preempted in VS-mode.
    pub(crate) preempted_in_supervisor: VcpuSet,
    /// Partners that were preempted with their interrupts disabled.
    pub(crate) preempted_interrupts_off: VcpuSet,
    /// Partners that yielded at a spin in VS-mode.
    pub(crate) yielded_in_supervisor: VcpuSet,
    /// Partner that holds the lock, if it is known.
    pub(crate) holder: Option<VcpuId>,
    /// The vCPU that is named as the holder is on a hart.
    pub(crate) holder_runs: bool,
    pub(crate) queues: &'a Queues,
    pub(crate) waits: &'a mut SpinWaits,
    /// Last vCPU that a partner yielded to.
    pub(crate) last_yielded_to: Option<VcpuId>,
    /// Time slice.
    pub(crate) slice: Ticks,
}

/// [`SpinRule::keep`] of policies that may return the hart at once: then the vCPU need not leave.
pub(crate) fn keep_if_continued(policy: &dyn SpinRule, scene: &mut Scene<'_>) -> Keep {
    match policy.suspend(scene, KnownWait::None) {
        Suspend::Continue => Keep::Yes,
        _ => Keep::No,
    }
}

impl Scene<'_> {
    /// Next of the ready partners that were preempted in VS-mode.
    pub(crate) fn preempted_partner(&self) -> Option<VcpuId> {
        self.next_in_turn(self.preempted_in_supervisor)
    }

    /// Next of the ready partners that were preempted with interrupts disabled: probably in a short critical section.
    pub(crate) fn preempted_interrupts_off_partner(&self) -> Option<VcpuId> {
        self.next_in_turn(self.preempted_interrupts_off)
    }

    /// Next of the ready partners that yielded at a spin in VS-mode.
    pub(crate) fn yielded_partner(&self) -> Option<VcpuId> {
        self.next_in_turn(self.yielded_in_supervisor)
    }

    /// Partner that holds the lock, if it is known and only needs a hart.
    pub(crate) fn ready_holder(&self) -> Option<VcpuId> {
        self.holder
            .filter(|&holder| self.ready_partners().contains(holder))
    }

    /// Next ready vCPU of `among`, from the one behind the last that was yielded to.
    fn next_in_turn(&self, among: VcpuSet) -> Option<VcpuId> {
        let candidates = self.ready_partners().intersection(among);
        if candidates.is_empty() {
            return None;
        }
        let after: VcpuSet = candidates
            .iter()
            .filter(|&vcpu| Some(vcpu) > self.last_yielded_to)
            .collect();
        choice::next_of(after, candidates)
    }

    /// Partners that are ready and in no spin wait. Only these may be waited for: they need nothing but a hart, so no circle of waits
    /// can form.
    pub(crate) fn ready_partners(&self) -> VcpuSet {
        self.queues
            .ready()
            .intersection(self.partners)
            .without(self.waits.waiting())
    }
}
