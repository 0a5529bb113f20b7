//! Requests of others to a vCPU, carried out on its hart before it enters its guest, and the interrupts that are injected there.

use crate::hart::common;
use crate::hart::csr::{self, number};
use crate::hart::fence;
use crate::run::software_events;
use crate::run::translations;
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::system::sharing;
use crate::vm::Vm;
use crate::vm::vcpu::{Vcpu, VcpuState, request};

/// Carries out requests; the vCPU's registers are on this hart.
#[inline(never)]
pub fn carry_out_requests(
    system: &Hypervisor,
    hart: &Hart,
    (vm, vcpu): (&Vm, &Vcpu),
    state: &mut VcpuState,
    requests: u32,
) {
    if requests & request::DEVICES != 0 {
        // Devices ask whether the guest waited, by the instruction in front of this one (`VmContext::is_guest_busy`).
        // SAFETY: the guest is entered at the address in its context, from which the register is loaded again.
        unsafe { csr::write::<{ number::SEPC }>(state.context.program_counter) };
        sharing::serve_marked(system, hart, vm);
    }
    if requests & request::FENCE_VIRTUAL != 0 {
        translations::carry_out_fences(system, hart, (vm, vcpu), state);
    }
    if requests & request::FENCE_INSTRUCTIONS != 0 {
        fence::instructions();
    }
    if requests & request::INTERRUPT != 0 {
        show_interrupts(vcpu);
    }
    if requests & request::NOTIFICATION != 0 {
        // SAFETY: hvip injects interrupts into the guest only.
        unsafe { csr::set::<{ number::HVIP }>(csr::NOTIFICATION) };
    }
    if requests & request::SOFTWARE_EVENT != 0 {
        software_events::deliver(vm, vcpu, state);
    }
}

/// Makes hvip show the interrupts that the hypervisor holds for the vCPU.
#[inline(never)]
pub fn show_interrupts(vcpu: &Vcpu) {
    // SAFETY: hvip injects interrupts into the guest only.
    unsafe {
        if vcpu.take_software_interrupt() {
            csr::set::<{ number::HVIP }>(csr::interrupt::VSSI);
        }
        // Without a guest file vstopi shows an external interrupt only if hvictl gives it a priority (AIA, "Virtual
        // supervisor top interrupt"); some implementations then show it whether or not it is pending.
        if vcpu.interrupts.lock().memory_file_asserts() {
            csr::set::<{ number::HVIP }>(csr::interrupt::VSEI);
            if common::has_interrupt_files() {
                csr::write::<{ number::HVICTL }>(csr::EXTERNAL_WITH_PRIORITY_1);
            }
        } else {
            hide_memory_file();
        }
    }
}

/// Shows no interrupt of a file in memory.
pub fn hide_memory_file() {
    // SAFETY: as in `show_interrupts`.
    unsafe {
        csr::clear::<{ number::HVIP }>(csr::interrupt::VSEI);
        if common::has_interrupt_files() {
            csr::write::<{ number::HVICTL }>(0);
        }
    }
}
