//! What callers note_kick the scheduler, and what it answers.

use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;

// What names vCPUs here names them by their places in one scheduler, or by the numbers that they have in all of a computer's
// (`groups`): `V` is such a name, and `S` a set of them.

/// The harts that must be interrupted so that they ask the scheduler again.
///
/// An idle hart must call [`crate::Scheduler::dispatch`], one that runs a vCPU must call
/// [`crate::Scheduler::reconsider`]. If the calling hart itself is among them, it needs no
/// interrupt: it asks before it goes on.
#[must_use = "a hart that is not interrupted may sleep on while work waits"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kicks(pub HartSet);

impl Kicks {
    /// Nobody needs to be interrupted.
    pub const NONE: Self = Self(HartSet::EMPTY);

    /// The harts.
    #[must_use]
    pub const fn harts(self) -> HartSet {
        self.0
    }

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }
}

/// Why a vCPU has left its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leave {
    /// Its time slice is over.
    SliceEnd,
    /// It waits for its own interrupts (WFI, or HSM suspend).
    SelfWait,
    /// It spins, and asked to be suspended (WRS.NTO, or a call).
    Spin,
    /// It spins on a word that the hypervisor knows; [`Probe::changed`] will note_kick when it is worth
    /// going on. Under any policy but `reservation` this is the same as `Spin`.
    SpinOnWord,
    /// The same at a lock that is first come, first served: what changes is whose turn it is, and all behind it wait
    /// until it has had its turn.
    SpinForTurn,
    /// It had to give way: it was paused, or lost the right to this hart, or the hypervisor wants
    /// the hart for something else. It keeps the rest of its slice.
    Preempted,
    /// It stopped (HSM stop, or its virtual machine ended).
    Stopped,
    /// It gave up the rest of its slice.
    Yield,
}

/// How a vCPU has left its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left<V = VcpuId> {
    /// Why.
    pub reason: Leave,
    /// How long it has run since it was dispatched.
    pub ran: Ticks,
    /// Whether it was in its supervisor (VS-mode): only the policies `directed` and `reservation` ask.
    pub in_supervisor: bool,
    /// Whether it could have taken an interrupt. One that spins with its interrupts closed is not woken by
    /// any while it waits for a word, because it could do nothing about it.
    pub interrupts_enabled: bool,
    /// For a spin on a ticket lock: the partner that holds it, if the hypervisor can note_kick.
    pub holder: Option<V>,
    /// For a spin: how many exits this wait has had, with this one.
    pub exits: u32,
    /// How long it takes to change to another vCPU and back.
    pub round_trip: Ticks,
}

impl<V> Left<V> {
    /// Left for this reason after running for `ran`, in its supervisor, open for interrupts.
    #[must_use]
    pub const fn new(reason: Leave, ran: Ticks) -> Self {
        Self {
            reason,
            ran,
            in_supervisor: true,
            interrupts_enabled: true,
            holder: None,
            exits: 1,
            round_trip: Ticks::ZERO,
        }
    }

    /// The same with another name for the holder.
    pub(crate) fn renamed<W>(&self, holder: Option<W>) -> Left<W> {
        Left {
            reason: self.reason,
            ran: self.ran,
            in_supervisor: self.in_supervisor,
            interrupts_enabled: self.interrupts_enabled,
            holder,
            exits: self.exits,
            round_trip: self.round_trip,
        }
    }
}

/// What a hart does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dispatch<V = VcpuId, S = VcpuSet> {
    /// Run this vCPU.
    Run {
        /// Which one.
        vcpu: V,
        /// Ask again after this time. `None`: nobody else can use the hart, no timer is needed.
        slice: Option<Ticks>,
        /// Whether its waits (WFI, WRS.NTO) must trap: `hstatus.VTW`.
        trap_waits: bool,
        /// Other harts for which there is work now.
        kicks: Kicks,
    },
    /// Nothing to run.
    Idle {
        /// The self-waiting vCPUs that ran here last, whose interrupt files are here, and those that wait for words
        /// and may run here.
        watch: S,
        /// Whether the hart must go on testing them by calling `dispatch`, because nobody will
        /// interrupt it. If not, it sleeps until an interrupt.
        poll: bool,
        /// Whether the hart waits actively: it does not sleep, but tests in a loop whether it was told of something, and then
        /// calls `dispatch`.
        active: bool,
        /// Other harts for which there is work now.
        kicks: Kicks,
    },
}

/// Whether a vCPU that waits for its own interrupts may do so without leaving its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace<S = VcpuSet> {
    /// It must leave.
    No,
    /// It was woken already, and goes on.
    Woken,
    /// It may. An interrupt of these, which ran here last and wait too, ends its wait: then it leaves.
    With(S),
}

/// What a hart that runs a vCPU does after a kick, or when its slice timer has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Continue {
    /// Go on with the same vCPU under these terms.
    Stay {
        /// Ask again after this time, boost_accounted from now. `None`: no timer is needed.
        slice: Option<Ticks>,
        /// Whether its waits must trap.
        trap_waits: bool,
    },
    /// The vCPU must leave: call [`crate::Scheduler::leave`] with this reason, then `dispatch`.
    Leave(Leave),
}

/// Tests that only the hypervisor can make. Each names a self-waiting vCPU.
///
/// A closure is a probe whose words always have changed.
pub trait Probe<V = VcpuId> {
    /// Whether an interrupt is pending and enabled for the vCPU (paper 002 §3.3). It is asked on
    /// the dispatching hart, and should answer `false` where this hart cannot know.
    fn pending(&mut self, vcpu: V) -> bool;

    /// Whether `pending` knows of the files of all harts. Where not, it is asked for vCPUs that ran on the dispatching
    /// hart last only.
    fn reaches_every_file(&self) -> bool {
        false
    }

    /// Whether what the vCPU waits for in memory has come, a change of the word or its turn, or cannot be read. Memory
    /// is the same for all harts, so any can note_kick.
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

/// The state of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VcpuState {
    /// There is no such vCPU.
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
