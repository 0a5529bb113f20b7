//! Wait policies: how a vCPU that waits for its own interrupts is found when one comes.
//!
//! Each policy is one file with one type that implements [`Wait`], and one line in [`policy`].

mod host_interrupt;
mod self_wait;

use crate::config::WaitPolicy;
use crate::id::{VcpuId, VcpuSet};

/// A wait policy.
pub(crate) trait Wait: Sync {
    /// Whether pending interrupts are found by testing, so that somebody has to go on testing.
    fn tests(&self) -> bool;

    /// Who is given a reason to run when `found`, one of `waiting` of one virtual machine, has an
    /// interrupt pending.
    fn grants(&self, found: VcpuId, waiting: VcpuSet) -> VcpuSet {
        let _ = waiting;
        VcpuSet::only(found)
    }

    /// Whether every idle hart is woken when there is work for one.
    fn wakes_every_hart(&self) -> bool {
        false
    }

    /// Whether vCPUs at the end of their slice are ordered by the service that they have had.
    fn orders_by_service(&self) -> bool {
        false
    }
}

/// The policy of this name.
pub(crate) fn policy(name: WaitPolicy) -> &'static dyn Wait {
    match name {
        WaitPolicy::HostInterrupt => &host_interrupt::HostInterrupt { every_hart: false },
        WaitPolicy::HostInterruptAll => &host_interrupt::HostInterrupt { every_hart: true },
        WaitPolicy::SelfWait => &self_wait::SelfWait { whole_vm: false },
        WaitPolicy::SelfWaitAll => &self_wait::SelfWait { whole_vm: true },
    }
}
