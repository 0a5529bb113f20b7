//! Injection of exceptions, as the hart would have delivered them if they had been delegated.

use crate::hart::csr::{self, number, status};
use crate::vm::vcpu::VcpuState;

/// Makes the guest take the exception `cause` with `value` in its stval, at the instruction that it was left at
/// (privileged architecture, "Trap Entry": sepc, scause, stval, SPP, SPIE and SIE, then stvec's base).
pub fn exception(state: &mut VcpuState, cause: u64, value: u64) {
    let context = &mut state.context;
    let old = csr::read::<{ number::VSSTATUS }>();
    let mut new = old & !(status::SPP | status::SPIE | status::SIE);
    if !context.in_user_mode() {
        new |= status::SPP;
    }
    if old & status::SIE != 0 {
        new |= status::SPIE;
    }
    // SAFETY: VS-level registers concern the guest alone.
    unsafe {
        csr::write::<{ number::VSSTATUS }>(new);
        csr::write::<{ number::VSEPC }>(context.program_counter);
        csr::write::<{ number::VSCAUSE }>(cause);
        csr::write::<{ number::VSTVAL }>(value);
    }
    // Exceptions go to the base in both modes of stvec.
    context.program_counter = csr::read::<{ number::VSTVEC }>() & !3;
    context.sstatus |= status::SPP;
    context.hstatus |= csr::hstatus::SPVP;
}
