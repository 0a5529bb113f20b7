//! Supervisor software events on a hart: the registers that an event changes, and its delivery.

use riscv::csr::status::{SPELP, SPP};

use crate::hart::csr::{self, hstatus, number};
use crate::vm::Vm;
use crate::vm::software_events::{Event, Interruptible};
use crate::vm::vcpu::{Vcpu, VcpuState, request};

/// State of the vCPU on this hart that an event changes.
#[must_use]
pub fn interruptible(state: &VcpuState) -> Interruptible {
    let context = &state.context;
    Interruptible {
        program_counter: context.program_counter,
        in_supervisor_mode: !context.in_user_mode(),
        expects_landing_pad: context.sstatus & SPELP != 0,
        status: csr::read::<{ number::VSSTATUS }>(),
        exception_counter: csr::read::<{ number::VSEPC }>(),
        a6: context.get(16),
        a7: context.get(17),
    }
}

/// Makes the state of the vCPU on this hart what an event has made of it.
pub fn apply(state: &mut VcpuState, vcpu: &Interruptible) {
    let context = &mut state.context;
    context.program_counter = vcpu.program_counter;
    context.sstatus &= !(SPP | SPELP);
    context.hstatus &= !hstatus::SPVP;
    if vcpu.in_supervisor_mode {
        context.sstatus |= SPP;
        context.hstatus |= hstatus::SPVP;
    }
    if vcpu.expects_landing_pad {
        context.sstatus |= SPELP;
    }
    context.set(16, vcpu.a6);
    context.set(17, vcpu.a7);
    // SAFETY: VS-level registers concern the guest alone.
    unsafe {
        csr::write::<{ number::VSSTATUS }>(vcpu.status);
        csr::write::<{ number::VSEPC }>(vcpu.exception_counter);
    }
}

/// Redirects the vCPU on this hart to the handler of the event that is due, if there is one.
#[cold]
#[inline(never)]
pub fn deliver(vm: &Vm, vcpu: &Vcpu, state: &mut VcpuState) {
    let mut interrupted = interruptible(state);
    let own = usize::from(vcpu.index);
    if vm.software_events.lock().deliver(own, &mut interrupted) {
        apply(state, &interrupted);
    }
}

/// Makes the event of an overflow of a counter pending for the vCPU, which is on this hart or leaves it.
#[cold]
#[inline(never)]
pub fn note_overflow(vm: &Vm, vcpu: &Vcpu) {
    let own = u64::from(vcpu.index);
    let told = vm
        .software_events
        .lock()
        .inject(Event::CounterOverflow, own);
    if let Ok(Some(_)) = told {
        // The vCPU looks at its requests before it enters its guest.
        let _ = vcpu.post_request(request::SOFTWARE_EVENT);
    }
}

/// Redirects the vCPU on this hart to its handler of double traps. Returns false if it has none that can run.
#[cold]
#[inline(never)]
pub fn double_trap(vm: &Vm, vcpu: &Vcpu, state: &mut VcpuState) -> bool {
    let mut interrupted = interruptible(state);
    let own = usize::from(vcpu.index);
    let is_handled = vm.software_events.lock().double_trap(own, &mut interrupted);
    if is_handled {
        apply(state, &interrupted);
    }
    is_handled
}
