//! Steal-time accounting at a dispatch, and when a vCPU leaves its hart.

use scheduler::{Leave, Ticks};

use crate::hart::csr;
use crate::memory::physical::Physical;
use crate::run::switch::declare_table;
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::vm::Vm;
use crate::vm::steal_time::WaitEnds;
use crate::vm::vcpu::{SupervisorState, VcpuState};

/// Counts the time before the dispatch of a vCPU of `vm` at `now`. Its state is on this hart.
#[cold]
#[inline(never)]
pub fn enter(system: &Hypervisor, hart: &Hart, vm: &Vm, state: &mut VcpuState, now: Ticks) {
    let VcpuState {
        steal_time,
        supervisor,
        ..
    } = state;
    let ends = || WaitEnds {
        ready_since: system
            .scheduler
            .lock_of(hart.index)
            .scheduler()
            .ready_since(hart.index)
            .get(),
        timer: timer_expiry(vm, supervisor),
    };
    let time = (now.get(), system.board.timebase_hertz);
    steal_time.enter(time, ends, (&vm.memory, &Physical::default()));
}

/// Notes that the vCPU leaves `hart` at `now`.
#[cold]
#[inline(never)]
pub fn leave(hart: &Hart, vm: &Vm, state: &mut VcpuState, reason: Leave, now: Ticks) {
    let is_ready = match reason {
        Leave::SelfWait => false,
        // The next start begins with another state, and the area is not written until then.
        Leave::Stopped => return,
        _ => true,
    };
    // A wait on the hart may have withdrawn the declaration, without which a page may go to another VM.
    let _ = declare_table(hart, vm);
    let memory = (&vm.memory, &Physical::default());
    state.steal_time.leave(is_ready, now.get(), memory);
}

/// Expiry of the saved timer by the board's time; `u64::MAX` if it does not wake the vCPU.
fn timer_expiry(vm: &Vm, state: &SupervisorState) -> u64 {
    if state.enabled & csr::interrupt::STI == 0 || state.deadline == u64::MAX {
        return u64::MAX;
    }
    state.deadline.wrapping_sub(vm.time_offset())
}
