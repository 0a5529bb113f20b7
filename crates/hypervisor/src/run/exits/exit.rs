//! A guest that has just been left, and what may follow.

use scheduler::Leave;

use crate::hart::counters::hart_counters::HartCounters;
use crate::hart::csr::{self, number};
use crate::run::software_events;
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::vm::Vm;
use crate::vm::accounts::CpuTime;
use crate::vm::vcpu::{Vcpu, VcpuState};

/// Continuation after an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The guest goes on.
    Resume,
    /// The scheduler decides whether the guest goes on.
    Reconsider,
    /// The vCPU waits for its own interrupts, on the hart if the scheduler allows it.
    Wait,
    /// The vCPU leaves the hart.
    Leave(Leave),
}

/// Exit of a guest, with all state that its handling may need.
#[derive(Debug)]
pub struct Exit<'a> {
    pub system: &'a Hypervisor,
    pub hart: &'a Hart,
    pub vm: &'a Vm,
    pub vcpu: &'a Vcpu,
    pub state: &'a mut VcpuState,
    pub cpu_time: CpuTime<'a>,
}

/// Returns true if an interrupt that the guest has enabled is pending, of whatever number: its timer, its file, a software interrupt, a
/// counter, the notification. Such a vCPU does not wait.
#[inline]
pub fn interrupt_is_pending(exit: &mut Exit<'_>) -> bool {
    // A counter that has just overflowed is injected before pending interrupts are read.
    if exit.state.counters.note_overflows(&mut HartCounters) {
        software_events::note_overflow(exit.vm, exit.vcpu);
        return true;
    }
    csr::read::<{ number::VSIP }>() & csr::read::<{ number::VSIE }>() != 0
}
