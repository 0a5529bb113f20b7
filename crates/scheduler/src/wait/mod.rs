//! Wait policies: how a vCPU that waits for its own interrupts is found when one comes.
//!
//! Each policy is one file with one type that implements [`Wait`], and one line in [`policy`].

mod host_interrupt;
mod in_place;
mod self_wait;

use crate::config::WaitPolicy;

/// A wait policy.
pub(crate) trait Wait: Sync {
    /// Whether pending interrupts are found by testing, so that somebody has to go on testing.
    fn tests(&self) -> bool;

    /// Whether a vCPU may wait for its own interrupts on its hart, while nobody else wants that.
    fn in_place(&self) -> bool {
        false
    }

    /// Whether an interrupt of one vCPU is a reason to run for all that wait of its virtual machine.
    fn grants_all(&self) -> bool {
        false
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
