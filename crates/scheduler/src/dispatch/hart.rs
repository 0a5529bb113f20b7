//! State of a hart.

use crate::base::id::VcpuId;
use crate::base::ticks::Ticks;

/// A vCPU on a hart, and its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) vcpu: VcpuId,
    /// Time of its dispatch.
    pub(crate) since: Ticks,
    /// End of its slice in time since its dispatch; `None` if it has no end.
    pub(crate) end: Option<Ticks>,
    pub(crate) trap_waits: bool,
    /// Start of the charged time, since its dispatch. `None`: no other vCPU wants the hart, so its time is free.
    pub(crate) charged_from: Option<Ticks>,
    /// Waits for its own interrupts, without having left.
    pub(crate) in_place: bool,
    /// Set if the vCPU has preempted another one on waking, and pays for the context switches.
    pub(crate) by_preemption: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    Offline,
    /// In the hypervisor, and about to call `dispatch`.
    Searching,
    /// Asleep or about to be: there is no vCPU to run.
    Idle,
    Running(Run),
}

/// Each on its own cache line, except for the model checker, which keeps many tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), repr(align(64)))]
pub(crate) struct Hart {
    pub(crate) doing: Doing,
    /// vCPUs taken out of the self-wait queue since the last one out of the ready queue.
    pub(crate) self_waits: u16,
    /// vCPU that must not get the slice back if another one can have it (Linux's skip buddy).
    pub(crate) skip: Option<VcpuId>,
    /// Part of the current run that the VM's boost account has already.
    pub(crate) boost_accounted: Ticks,
    /// vCPU that a policy wants here next (Linux's next buddy).
    pub(crate) next: Option<VcpuId>,
    /// Time since which it has been idle; `None` while it runs a vCPU.
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
