//! The floating-point and vector registers of a vCPU on a hart: loaded, given at the first use, and saved.

use crate::system::harts::Hart;
use crate::vm::lazy_registers::{is_vector, lacks_registers};
use crate::vm::vcpu::{Vcpu, VcpuState};

/// Loads the registers at the dispatch of `vcpu`, if they are expected to be used.
#[inline(always)]
pub fn load(hart: &Hart, vcpu: &Vcpu, state: &mut VcpuState) {
    let VcpuState {
        float,
        vector,
        context,
        ..
    } = state;
    float.load(&hart.float, vcpu.id, context);
    if let Some(vector) = vector {
        vector.load(&hart.vector, vcpu.id, context);
    }
    let lacks = lacks_registers(context.sstatus, vector.is_some());
    hart.illegal_instructions.take(lacks);
}

/// Loads registers at an illegal instruction, if the guest lacked only them. Returns true then: the guest executes the instruction
/// again. `instruction` is stval, which may be 0 (privileged architecture, "Supervisor Trap Value Register").
#[must_use]
pub fn give(hart: &Hart, vcpu: &Vcpu, state: &mut VcpuState, instruction: u64) -> bool {
    let VcpuState {
        float,
        vector,
        context,
        ..
    } = state;
    let concerned = vector
        .as_mut()
        .filter(|_| instruction == 0 || is_vector(instruction as u32));
    // A vector instruction may need floating-point registers as well.
    let gave = concerned.is_some_and(|vector| vector.give(&hart.vector, vcpu.id, context))
        || float.give(&hart.float, vcpu.id, context);
    let lacks = lacks_registers(context.sstatus, vector.is_some());
    hart.illegal_instructions.take(lacks);
    gave
}

/// Saves the registers when the vCPU leaves its hart, if they have changed.
#[inline]
pub fn unload(state: &mut VcpuState) {
    state.float.unload(&state.context);
    if let Some(vector) = &mut state.vector {
        vector.unload(&state.context);
    }
}
