//! What a vCPU is doing.

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

/// The wait for a word that the hypervisor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    /// It ends then at the latest.
    pub(crate) until: Ticks,
    /// Until then no interrupt is a reason to run.
    pub(crate) interruptible_from: Ticks,
    /// It could take one: it was interrupted too often, and hears again as soon as a hart has nothing else to do.
    pub(crate) interrupts_enabled: bool,
    /// What will come is the vCPU's turn.
    pub(crate) turn: bool,
}

/// A vCPU. Which queue holds it is known to the queues: one of them does if and only if it is ready
/// or self-waiting, and not paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), repr(align(64)))]
pub(crate) struct Vcpu {
    pub(crate) vm: VmId,
    /// All vCPUs of its virtual machine, and whether they have harts of their own: as the machine's entry says.
    pub(crate) partners: VcpuSet,
    pub(crate) dedicated: bool,
    pub(crate) phase: Phase,
    /// Told to stop while running.
    pub(crate) stopping: bool,
    pub(crate) paused: bool,
    /// Woken while running, or while it was uninterruptible: it must not sleep over it. A vCPU is uninterruptible that waits for a word and for which no
    /// interrupt is a reason to run: it has its interrupts closed, or was interrupted too often.
    pub(crate) woken: bool,
    /// Self-waiting for a word.
    pub(crate) word: Option<Word>,
    /// Where it ran last: its interrupt file is there.
    pub(crate) last: Option<HartId>,
    /// Its only hart, under dedicated allocation and fixed scheduling.
    pub(crate) home: Option<HartId>,
    /// When it became ready.
    pub(crate) since: Ticks,
    /// What is left of its slice.
    pub(crate) slice: Ticks,
    /// Its own service quantity, under fixed scheduling.
    pub(crate) service: Service,
    /// How often another one was preferred to it.
    pub(crate) passed_over: u8,
    /// All time that it has run.
    pub(crate) used: Ticks,
}

/// A virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Vm {
    pub(crate) first: VcpuId,
    pub(crate) vcpus: VcpuSet,
    pub(crate) dedicated: bool,
    pub(crate) share: u32,
    /// Which part of the share counts here: so many parts of so many. All of it, unless other groups of harts serve some of the
    /// machine's vCPUs.
    pub(crate) part: (u32, u32),
    /// Where its vCPUs run while it shares harts.
    pub(crate) placement: Placement,
    /// Its service quantity, under floating scheduling.
    pub(crate) service: Service,
    /// The last vCPU that the policy `directed` or `reservation` favoured.
    pub(crate) last_yielded_to: Option<VcpuId>,
    /// How far it has come in virtual time.
    pub(crate) wakeup_vruntime: VirtualTime,
    /// Its virtual time by which a machine is last_yielded_to: brought near the mean of all each time that one is chosen.
    pub(crate) boost_vruntime: u64,
    /// What a tick with a hart is in virtual time.
    pub(crate) inverse_weight: InverseWeight,
}
