//! SBI RFENCE: fences on other vCPUs.
//!
//! A vCPU that is not in its guest only gets a purge bit, which is honoured before it next enters: nobody is signalled.
//! One that is in its guest is interrupted, and the caller waits until it has left the guest.

use super::call::{Call, SbiError, SbiResult, named};
use crate::hart::counters::FirmwareEvent;
use crate::run::exits::exit::Exit;
use crate::vm::vcpu::request;

const FENCE_I: u64 = 0;
const SFENCE_VMA: u64 = 1;
const SFENCE_VMA_ASID: u64 = 2;

/// Answers an RFENCE call. The HFENCE functions are for hypervisors, which guests have no use for.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    let (what, event) = match call.function {
        FENCE_I => (
            request::FENCE_INSTRUCTIONS,
            FirmwareEvent::FenceInstructionsSent,
        ),
        // A fence over everything of the vCPU includes every range and address space.
        SFENCE_VMA => (request::FENCE_VIRTUAL, FirmwareEvent::FenceVirtualSent),
        SFENCE_VMA_ASID => (request::FENCE_VIRTUAL, FirmwareEvent::FenceVirtualAsidSent),
        _ => return Err(SbiError::NotSupported),
    };
    exit.registers.counters.count(event);
    for vcpu in named(exit, call.arguments[0], call.arguments[1])? {
        if let Some(hart) = vcpu.ask(what) {
            exit.system.hart(hart).kick();
        }
    }
    for vcpu in named(exit, call.arguments[0], call.arguments[1])? {
        // Whoever enters its guest from now on has carried the request out first. The caller itself is not in its
        // guest, so two that wait for each other both go on.
        while vcpu.guest_hart().is_some() && vcpu.has_requests(what) {
            core::hint::spin_loop();
        }
    }
    Ok(0)
}
