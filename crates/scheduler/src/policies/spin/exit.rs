//! Spin exits: the question of the hypervisor before a spinning vCPU leaves, and the answer.

use crate::base::id::VcpuId;
use crate::base::ticks::Ticks;

/// A spin exit, before it is decided whether the vCPU leaves its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinExit<V = VcpuId> {
    /// Target of the wait.
    pub on: SpinOn,
    /// Partner that holds a ticket lock, if it is known.
    pub holder: Option<V>,
}

/// Target of a spin, as far as the hypervisor can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinOn {
    /// Unknown.
    Unknown,
    /// A change of a word.
    Word,
    /// A turn at a lock that is first come, first served.
    Turn {
        /// The vCPU is the next in line.
        next: bool,
    },
}

/// Answer to a spin exit: whether the vCPU keeps its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The vCPU must leave: call [`crate::Scheduler::leave`].
    No,
    /// The vCPU may poll for a round trip of context switches, but not longer than this, and leaves if the wait is not over by then.
    Poll(Ticks),
    /// The vCPU continues.
    Yes,
}
