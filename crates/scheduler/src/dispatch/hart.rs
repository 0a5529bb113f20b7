//! What a hart is doing.

use crate::base::id::VcpuId;
use crate::base::ticks::Ticks;

/// A vCPU on a hart, and the terms on which it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) vcpu: VcpuId,
    /// When it was dispatched.
    pub(crate) since: Ticks,
    /// When its slice ends, in time that it has run since its dispatch; `None`: it has no end.
    pub(crate) end: Option<Ticks>,
    pub(crate) trap_waits: bool,
    /// From when on its time is charged to its virtual machine, in time since its dispatch. `None`:
    /// nobody else wants the hart, so its time costs nothing.
    pub(crate) charged_from: Option<Ticks>,
    /// Waits for its own interrupts, without having left.
    pub(crate) in_place: bool,
    /// It has the hart because it did not wait for the end of another one's slice, and pays for the changes.
    pub(crate) by_preemption: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    Offline,
    /// In the hypervisor, and sure to call `dispatch` before anything else.
    Searching,
    /// Told that there is nothing to do; asleep, or about to be.
    Idle,
    Running(Run),
}

/// On a cache line of its own; the model checker keeps a great many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), repr(align(64)))]
pub(crate) struct Hart {
    pub(crate) doing: Doing,
    /// How many vCPUs it has taken out of the self-wait queue since the last out of the ready queue.
    pub(crate) self_waits: u16,
    /// The vCPU that it must not give the slice back to, if anybody else can have it.
    pub(crate) skip: Option<VcpuId>,
    /// How much of its stay was told to the vCPU's machine already.
    pub(crate) boost_accounted: Ticks,
    /// The vCPU that a policy wants here next.
    pub(crate) next: Option<VcpuId>,
    /// Since when it has had nothing to do but to wait; `None` while it runs a vCPU.
    pub(crate) idle_since: Option<Ticks>,
}

impl Hart {
    pub(crate) const fn new(online: bool) -> Self {
        Self {
            doing: if online {
                Doing::Searching
            } else {
                Doing::Offline
            },
            self_waits: 0,
            skip: None,
            boost_accounted: Ticks::ZERO,
            next: None,
            idle_since: None,
        }
    }

    pub(crate) const fn run(&self) -> Option<Run> {
        match self.doing {
            Doing::Running(run) => Some(run),
            _ => None,
        }
    }
}
