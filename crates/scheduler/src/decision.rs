//! Events that callers report, and the scheduler's answers.

use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;

// `V` names a vCPU by its place in one scheduler, or by its number in the computer (`groups`); `S` is a set of them.

/// Harts that must be interrupted so that they ask the scheduler again.
///
/// An idle hart must call [`crate::Scheduler::dispatch`], a hart with a vCPU [`crate::Scheduler::reconsider`]. If the calling hart itself is among
/// them, it needs no interrupt: it asks before it goes on.
#[must_use = "a hart that is not interrupted may sleep on while work waits"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kicks(pub HartSet);

impl Kicks {
    /// No hart.
    pub const NONE: Self = Self(HartSet::EMPTY);

    /// Set of the harts.
    #[must_use]
    pub const fn harts(self) -> HartSet {
        self.0
    }

    /// Harts of both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }
}

/// Reasons of a vCPU to leave its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leave {
    /// Its time slice is over.
    SliceEnd,
    /// The vCPU waits for its own interrupts (WFI, or HSM suspend).
    SelfWait,
    /// The vCPU spins, and asked to be suspended (WRS.NTO, or a call).
    Spin,
    /// The vCPU spins on a word that the hypervisor knows; [`Probe::changed`] tells when the wait is over. Under any policy but `reservation` this is the
    /// same as `Spin`.
    SpinOnWord,
    /// The vCPU spins for its turn at a lock that is first come, first served: all waiters behind it wait until it has had its turn.
    SpinForTurn,
    /// The vCPU was preempted: it was paused, lost the right to this hart, or the hypervisor wants the hart for another vCPU. It keeps the rest of its
    /// slice.
    Preempted,
    /// The vCPU stopped (HSM stop, or its VM ended).
    Stopped,
    /// The vCPU gave up the rest of its slice.
    Yield,
}

/// Report of a vCPU that has left its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left<V = VcpuId> {
    /// Reason.
    pub cause: Leave,
    /// Time since its dispatch.
    pub ran: Ticks,
    /// Set if it was in VS-mode: only the policies `directed` and `reservation` use it.
    pub in_supervisor: bool,
    /// Set if it could take an interrupt. A vCPU that spins with interrupts disabled is not woken by any while it waits for a word, because it could
    /// not take it.
    pub interrupts_enabled: bool,
    /// Partner that holds the ticket lock at which it spins, if the hypervisor knows.
    pub holder: Option<V>,
    /// Exits of this spin, with this one.
    pub exits: u32,
    /// Time of a context switch to another vCPU and back.
    pub round_trip: Ticks,
    /// Part of `ran` in which the hart worked for devices of other VMs.
    pub for_others: Ticks,
    /// Time in which harts worked for devices of its VM while they had vCPUs of others, as far as it was not reported yet.
    pub by_others: Ticks,
}

impl<V> Left<V> {
    /// Report with this reason after `ran` on the hart, in VS-mode with interrupts enabled.
    #[must_use]
    pub const fn new(reason: Leave, ran: Ticks) -> Self {
        Self {
            cause: reason,
            ran,
            in_supervisor: true,
            interrupts_enabled: true,
            holder: None,
            exits: 1,
            round_trip: Ticks::ZERO,
            for_others: Ticks::ZERO,
            by_others: Ticks::ZERO,
        }
    }

    /// Report with another identifier of the holder.
    pub(crate) fn renamed<W>(&self, holder: Option<W>) -> Left<W> {
        Left {
            cause: self.cause,
            ran: self.ran,
            in_supervisor: self.in_supervisor,
            interrupts_enabled: self.interrupts_enabled,
            holder,
            exits: self.exits,
            round_trip: self.round_trip,
            for_others: self.for_others,
            by_others: self.by_others,
        }
    }
}

/// Next action of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dispatch<V = VcpuId, S = VcpuSet> {
    /// Run a vCPU.
    Run {
        /// The vCPU.
        vcpu: V,
        /// Ask again after this time. `None`: no other vCPU can use the hart, no timer is needed.
        slice: Option<Ticks>,
        /// Set if its waits (WFI, WRS.NTO) must trap: `hstatus.VTW`.
        trap_waits: bool,
        /// Harts with new work, besides the caller's.
        kicks: Kicks,
    },
    /// Wait: there is no vCPU to run.
    Idle {
        /// Self-waiting vCPUs that ran here last, whose interrupt files are here, and those that wait for words and may run here.
        watch: S,
        /// Set if the hart must go on testing them by calling `dispatch`, because no interrupt will come. If not, it sleeps until an interrupt.
        poll: bool,
        /// Set if the hart waits actively: it does not sleep, but polls whether it was kicked, and then calls `dispatch`.
        active: bool,
        /// Harts with new work, besides the caller's.
        kicks: Kicks,
    },
}

/// Answer to a vCPU that is about to wait for its own interrupts: whether it may stay on its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace<S = VcpuSet> {
    /// The vCPU must leave.
    No,
    /// The vCPU was woken already, and continues.
    Woken,
    /// The vCPU may stay. An interrupt of one of these, which ran here last and wait too, ends its wait: then it leaves.
    With(S),
}

/// Action of a hart that runs a vCPU, after a kick or at the end of the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Continue {
    /// Continue with the same vCPU under these terms.
    Stay {
        /// Ask again after this time from now. `None`: no timer is needed.
        slice: Option<Ticks>,
        /// Set if its waits must trap.
        trap_waits: bool,
    },
    /// The vCPU must leave: call [`crate::Scheduler::leave`] with this reason, then `dispatch`.
    Leave(Leave),
}

/// Tests that only the hypervisor can make. Each names a self-waiting vCPU.
///
/// A closure is a probe whose words always have changed.
pub trait Probe<V = VcpuId> {
    /// Returns true if an interrupt is pending and enabled for the vCPU (paper 002 §3.3). The dispatching hart asks; the answer is false if it cannot know.
    fn pending(&mut self, vcpu: V) -> bool;

    /// Returns true if `pending` knows of the files of all harts. Otherwise it is asked only for vCPUs that ran on the dispatching hart last.
    fn reaches_every_file(&self) -> bool {
        false
    }

    /// Returns true if the word that the vCPU waits for has changed, shows its turn, or cannot be read. Memory is the same for all harts, so any hart can
    /// ask.
    fn changed(&mut self, vcpu: V) -> bool {
        let _ = vcpu;
        true
    }
}

impl<F: FnMut(VcpuId) -> bool> Probe for F {
    fn pending(&mut self, vcpu: VcpuId) -> bool {
        self(vcpu)
    }
}

/// State of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VcpuState {
    /// Unknown vCPU.
    Absent,
    /// Waits for a start.
    Stopped,
    /// Told to stop, but still on this hart.
    Stopping(HartId),
    /// Waits for a resume.
    Paused,
    /// Told to pause, but still on this hart.
    Pausing(HartId),
    /// Waits for a hart.
    Ready,
    /// Is ready, but waits for partners because of a spin.
    SpinWait,
    /// Waits for its own interrupts, or for a word to change.
    SelfWait,
    /// On this hart.
    Running(HartId),
}
