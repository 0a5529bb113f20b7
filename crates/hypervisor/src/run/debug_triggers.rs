//! The debug triggers of a vCPU on a hart.
//!
//! Breakpoints of a vCPU with triggers come to the hypervisor, which injects them, and those of all others go to their guests by hedeleg. A hart
//! may keep triggers from firing while interrupts are off in the mode that takes the exception (Debug Specification, "Native Triggers"); that is
//! HS-mode then, so a guest's triggers fire wherever it is. A guest sees the same on all harts.

use riscv::exception;

use crate::hart::csr::{self, number};
use crate::system::harts::Hart;
use crate::vm::vcpu::{Vcpu, VcpuState};

/// Breakpoints in hedeleg.
const BREAKPOINT: u64 = 1 << exception::BREAKPOINT;

/// Makes the hart's triggers those of the vCPU that comes to it.
#[cold]
#[inline(never)]
pub fn load(hart: &Hart, vcpu: &Vcpu, state: &mut VcpuState) {
    let own = (&state.triggers, &mut state.trigger_place);
    let mut hardware = &hart.firmware_triggers;
    hart.triggers.load(vcpu.id, own, &mut hardware);
    delegate(hart);
}

/// Makes the hart's triggers those of the vCPU on it, which has changed them. Returns false, with none there, if that cannot be.
#[must_use]
pub fn replace(hart: &Hart, vcpu: &Vcpu, state: &mut VcpuState) -> bool {
    let own = (&state.triggers, &mut state.trigger_place);
    let mut hardware = &hart.firmware_triggers;
    let is_done = hart.triggers.replace(vcpu.id, own, &mut hardware);
    delegate(hart);
    is_done
}

/// Leaves breakpoints to the guest unless the hart has triggers.
fn delegate(hart: &Hart) {
    // SAFETY: what is delegated concerns guests alone.
    unsafe {
        match hart.triggers.are_here() {
            true => csr::clear::<{ number::HEDELEG }>(BREAKPOINT),
            false => csr::set::<{ number::HEDELEG }>(BREAKPOINT),
        }
    }
}
