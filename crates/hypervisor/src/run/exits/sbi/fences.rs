//! SBI RFENCE: fences on other vCPUs.
//!
//! A vCPU that is not in its guest only gets a request, which is carried out before it next enters: no hart is interrupted.
//! A vCPU in its guest is interrupted, and the caller waits until the vCPU has left the guest. The extent of a fence is in
//! `memory::translations::remote`.
//!
//! The caller does not wait for what the sibling's hart does in the hypervisor, however long that is: `Vcpu::leave_guest` is called a bounded
//! number of instructions after the trap, before the exit is handled. No guest can mask the interrupt of its hart's hypervisor. So the wait is as
//! long as an interrupt takes from hart to hart, with what the firmware does on that hart meanwhile; it is the same for any number of siblings,
//! because all are interrupted before the first one is waited for.

use abi::system::RemoteFences;
use riscv::sbi::remote_fence::{FENCE_I, SFENCE_VMA, SFENCE_VMA_ASID};

use super::call::{Call, SbiError, SbiResult, named};
use crate::hart::counters::FirmwareEvent;
use crate::memory::translations::remote::{self, Operands};
use crate::run::exits::exit::Exit;
use crate::vm::vcpu::request;

/// Answers an RFENCE call. The HFENCE functions are for hypervisors, which guests have no use for.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    let [mask, base, start, size, asid, ..] = call.arguments;
    let (operands, event) = match call.function {
        FENCE_I => (None, FirmwareEvent::FenceInstructionsSent),
        SFENCE_VMA => (
            Some(Operands::of_range(start, size, None)),
            FirmwareEvent::FenceVirtualSent,
        ),
        SFENCE_VMA_ASID => (
            // satp holds 16 bits of it at most.
            Some(Operands::of_range(start, size, Some(asid as u16))),
            FirmwareEvent::FenceVirtualAsidSent,
        ),
        _ => return Err(SbiError::NotSupported),
    };
    exit.state.counters.count(event);
    // A call that names a missing vCPU has no effect.
    let all = named(exit, mask, base)?;
    let what = match operands {
        Some(operands) => {
            let named = all.fold(0, |all, vcpu| all | 1 << vcpu.index);
            ask_for_fences(exit, operands, named);
            request::FENCE_VIRTUAL
        }
        None => {
            for vcpu in all {
                if let Some(hart) = vcpu.post_request(request::FENCE_INSTRUCTIONS) {
                    exit.system.hart(hart).kick();
                }
            }
            request::FENCE_INSTRUCTIONS
        }
    };
    for vcpu in named(exit, mask, base)? {
        // A vCPU that enters its guest from now on has carried the request out first. The caller itself is not in its
        // guest, so two callers that wait for each other both go on.
        while vcpu.is_awaited(what) {
            core::hint::spin_loop();
        }
    }
    Ok(0)
}

/// Requests a fence of all vCPUs that it concerns; `named` has a bit for each vCPU of the VM that the caller names.
fn ask_for_fences(exit: &Exit<'_>, operands: Operands, named: u64) {
    let (system, own) = (exit.system, exit.vm.id);
    let concerned = match system.remote_fences {
        RemoteFences::AnyVcpu => &system.vcpus[..],
        RemoteFences::Precise | RemoteFences::AnyAddress => system.vcpus_of(own),
    };
    for vcpu in concerned {
        let is_sibling = vcpu.vm == own;
        let is_named = is_sibling && named >> vcpu.index & 1 != 0;
        let whom = (is_sibling, is_named);
        let Some(operands) = remote::asked(system.remote_fences, operands, whom) else {
            continue;
        };
        vcpu.fences.push(operands);
        // Only the named vCPUs must have fenced when the call returns.
        if let Some(hart) = vcpu.post_request(request::FENCE_VIRTUAL)
            && is_named
        {
            system.hart(hart).kick();
        }
    }
}
