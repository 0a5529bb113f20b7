//! State of a vCPU and of a VM.

use crate::base::id::{HartId, VcpuId, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::config::Placement;
use crate::policies::service::Service;
use crate::policies::virtual_time::{InverseWeight, VirtualTime};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Stopped,
    Ready,
    SelfWait,
    Running(HartId),
}

/// Wait for a word that the hypervisor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    /// Latest end of the wait.
    pub(crate) until: Ticks,
    /// Until then no interrupt ends the wait.
    pub(crate) interruptible_from: Ticks,
    /// The vCPU could take an interrupt, but was interrupted often: it is interruptible as soon as a hart is idle.
    pub(crate) interrupts_enabled: bool,
    /// The word gives the vCPU its turn at a lock.
    pub(crate) turn: bool,
}

/// A vCPU. The queues know which of them holds it: one does if and only if it is ready or self-waiting, and not paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), repr(align(64)))]
pub(crate) struct Vcpu {
    pub(crate) vm: VmId,
    /// All vCPUs of its VM. Like `dedicated`, a copy of the VM's entry.
    pub(crate) partners: VcpuSet,
    pub(crate) dedicated: bool,
    pub(crate) phase: Phase,
    /// Set if the vCPU is to be stopped, but still runs.
    pub(crate) stopping: bool,
    pub(crate) paused: bool,
    /// Woken while running or uninterruptible: it must not wait again before it has tested. A vCPU is uninterruptible if it waits for a word with
    /// interrupts disabled, or after many interrupts.
    pub(crate) woken: bool,
    /// Wait for a word.
    pub(crate) word: Option<Word>,
    /// Last hart: its interrupt file is there.
    pub(crate) last: Option<HartId>,
    /// Only hart, under dedicated allocation and fixed scheduling, and under the policy `gang`.
    pub(crate) home: Option<HartId>,
    /// Row in the matrix of the policy `gang`.
    pub(crate) row: u8,
    /// Time at which it became ready.
    pub(crate) since: Ticks,
    /// Rest of its slice.
    pub(crate) slice: Ticks,
    /// Own service account, under fixed scheduling.
    pub(crate) service: Service,
    /// Times that another vCPU was preferred to it.
    pub(crate) passed_over: u8,
    /// Time that it has run.
    pub(crate) used: Ticks,
}

/// A VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Vm {
    pub(crate) first: VcpuId,
    pub(crate) vcpus: VcpuSet,
    pub(crate) dedicated: bool,
    pub(crate) share: u32,
    /// Part of the share that counts here, as a fraction. It is less than the whole if other groups serve some of the VM's vCPUs.
    pub(crate) part: (u32, u32),
    /// Placement of its vCPUs while it shares harts.
    pub(crate) placement: Placement,
    /// Service account, under floating scheduling.
    pub(crate) service: Service,
    /// Last vCPU that the policy `directed` or `reservation` yielded to.
    pub(crate) last_yielded_to: Option<VcpuId>,
    /// Virtual time of wake-up preemption.
    pub(crate) wakeup_vruntime: VirtualTime,
    /// Virtual time of VM boost. Its lag is clamped at each choice.
    pub(crate) boost_vruntime: u64,
    /// Virtual time per tick.
    pub(crate) inverse_weight: InverseWeight,
}
