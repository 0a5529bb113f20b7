//! Injection of exceptions, as the hart would have delivered them if they had been delegated.

use abi::monitor::StopReason;

use super::exit::Exit;
use crate::hart::csr::{self, number, status};
use crate::run::software_events;
use crate::system::lifecycle;
use crate::vm::lifecycle::life::{Ending, Originator};

/// Makes the guest take the exception `cause` with `value` in its stval, at the instruction that it was left at
/// (privileged architecture, "Trap Entry": sepc, scause, stval, SPP, SPIE and SIE, then stvec's base; SPELP by "Zicfilp", SDT by "Double Trap
/// Control in sstatus Register").
pub fn exception(exit: &mut Exit<'_>, cause: u64, value: u64) {
    let has_double_traps = exit.state.features.has_double_traps();
    let old = csr::read::<{ number::VSSTATUS }>();
    if has_double_traps && old & status::SDT != 0 {
        return double_trap(exit);
    }
    let context = &mut exit.state.context;
    let mut new = old & !(status::SPP | status::SPIE | status::SIE | status::SPELP);
    if !context.in_user_mode() {
        new |= status::SPP;
    }
    if old & status::SIE != 0 {
        new |= status::SPIE;
    }
    new |= context.sstatus & status::SPELP;
    context.sstatus &= !status::SPELP;
    if has_double_traps {
        new |= status::SDT;
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

/// Redirects the vCPU to its handler of double traps: its guest trapped in a trap handler that was not ready for it. If the guest has no such handler
/// that can run, its VM ends.
#[cold]
pub fn double_trap(exit: &mut Exit<'_>) {
    if software_events::double_trap(exit.vm, exit.vcpu, exit.state) {
        return;
    }
    // If the VM ends already, that stands.
    let ending = Ending::Fail(StopReason::Fault);
    let _ = lifecycle::end(exit.system, exit.vm, ending, Originator::Guest);
}
