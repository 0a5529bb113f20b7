//! Wait policies: how a vCPU that waits for its own interrupts is found when one comes.
//!
//! Each policy is one file with its rules, and one line in [`rules`].

mod active_wait;
mod host_interrupt;
mod in_place;
mod self_wait;

use crate::config::WaitPolicy;

/// The rules of a wait policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    /// Pending interrupts are found by testing, so that somebody has to go on testing.
    pub(crate) tests: bool,
    /// A vCPU may wait for its own interrupts on its hart, while nobody else wants that.
    pub(crate) in_place: bool,
    /// An interrupt of one vCPU is a reason to run for all that wait of its virtual machine.
    pub(crate) grants_all: bool,
    /// One that is woken goes before those whose virtual machines have had more.
    pub(crate) hurries: bool,
    /// Every idle hart is woken when there is work for one.
    pub(crate) wakes_every_hart: bool,
    /// An idle hart does not sleep: it polls whether it was told of work.
    pub(crate) polls: bool,
    /// vCPUs at the end of their slice are ordered by the service that they have had.
    pub(crate) orders_by_service: bool,
}

/// The rules of this policy.
pub(crate) const fn rules(policy: WaitPolicy) -> Rules {
    match policy {
        WaitPolicy::HostInterrupt => host_interrupt::ONE_HART,
        WaitPolicy::HostInterruptAll => host_interrupt::EVERY_HART,
        WaitPolicy::ActiveWaitAll => active_wait::EVERY_HART,
        WaitPolicy::SelfWait => self_wait::ONE_VCPU,
        WaitPolicy::SelfWaitAll => self_wait::WHOLE_VM,
    }
}
