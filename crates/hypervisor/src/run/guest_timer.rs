//! Timers of guests on harts without Sstc: the deadline is one of the hart's own timer, and the interrupt is injected.
//!
//! `SupervisorState::deadline` is what the guest has set, until the interrupt is in hvip.

use crate::hart::common;
use crate::hart::csr::{self, interrupt, number};
use crate::hart::{self};
use crate::system::harts::Hart;
use crate::vm::Vm;
use crate::vm::vcpu::VcpuState;

/// Brings the deadline of a vCPU to its hart, whose timer is set afterwards.
#[inline]
pub fn load(hart: &Hart, vm: &Vm, state: &mut VcpuState) {
    if !common::has_supervisor_timer() {
        load_deadline(hart, vm, state);
    }
}

#[inline(never)]
fn load_deadline(hart: &Hart, vm: &Vm, state: &mut VcpuState) {
    let deadline = vm.timer_deadline(&state.supervisor);
    if deadline <= hart::time() {
        inject();
        state.supervisor.deadline = u64::MAX;
        hart.poll_schedule.keep_guest(u64::MAX);
    } else {
        hart.poll_schedule.keep_guest(deadline);
    }
}

/// Takes the deadline of a vCPU off its hart.
#[inline]
pub fn unload(hart: &Hart, state: &mut VcpuState) {
    if !common::has_supervisor_timer() && hart.poll_schedule.take_guest() == u64::MAX {
        // None was set, or its interrupt was injected.
        state.supervisor.deadline = u64::MAX;
    }
}

/// Sets the deadline of the guest that has the hart, in the guest's time (SBI, "Set Timer": a pending interrupt is cleared).
pub fn set(hart: &Hart, vm: &Vm, state: &mut VcpuState, deadline: u64) {
    if common::has_supervisor_timer() {
        // SAFETY: vstimecmp concerns the guest alone.
        unsafe { csr::write::<{ number::VSTIMECMP }>(deadline) };
        return;
    }
    // SAFETY: hvip injects interrupts into the guest only.
    unsafe { csr::clear::<{ number::HVIP }>(interrupt::VSTI) };
    state.supervisor.deadline = deadline;
    load_deadline(hart, vm, state);
    hart.poll_schedule.arm();
}

/// Injects the timer interrupt of the guest that has the hart, if the deadline has come. Returns true then.
pub fn expire(hart: &Hart, time: u64) -> bool {
    let expired = hart.poll_schedule.expire_guest(time);
    if expired {
        inject();
    }
    expired
}

fn inject() {
    // SAFETY: hvip injects interrupts into the guest only.
    unsafe { csr::set::<{ number::HVIP }>(interrupt::VSTI) };
}
