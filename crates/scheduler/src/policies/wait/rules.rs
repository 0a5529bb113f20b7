//! Rules of a wait policy.

/// Answers of a wait policy to the scheduler's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    /// Pending interrupts are found by testing, so that a hart has to go on testing.
    pub(crate) tests: bool,
    /// A vCPU may wait for its own interrupts on its hart while no other vCPU wants the hart.
    pub(crate) in_place: bool,
    /// An interrupt of one vCPU makes all waiting vCPUs of its VM ready.
    pub(crate) grants_all: bool,
    /// A woken vCPU preempts one whose VM is ahead.
    pub(crate) preempts_on_wake: bool,
    /// Every idle hart is woken when there is work for one.
    pub(crate) wakes_every_hart: bool,
    /// An idle hart does not sleep: it polls whether it was kicked.
    pub(crate) polls: bool,
    /// vCPUs at the end of their slices are ordered by the service that they have had.
    pub(crate) orders_by_service: bool,
}
