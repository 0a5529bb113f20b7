//! SBI HSM, SUSP and SRST: the power of a guest's harts, and of the guest.

use core::sync::atomic::Ordering;

use abi::monitor::StopReason;
use riscv::sbi::{hart_state, reset, suspend as sleep};
use scheduler::Leave;

use super::call::{Call, SbiError, SbiResult};
use super::software_events;
use crate::memory::address::GuestPhysical;
use crate::run::exits::exit::{Exit, Next, interrupt_is_pending};
use crate::system::lifecycle;
use crate::vm::lifecycle::life::{Ending, Originator, Power, SiblingRuns, StartError};

/// Answers an HSM call.
pub fn hart_state(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, Next) {
    let [first, second, third, ..] = call.arguments;
    match call.function {
        hart_state::START => (start(exit, first, second, third), Next::Resume),
        hart_state::STOP => {
            software_events::stop(exit);
            // A sibling may start the vCPU again only after it has left its hart.
            lifecycle::stop_vcpu(exit.system, exit.vm, exit.vcpu);
            (Ok(0), Next::Leave(Leave::Stopped))
        }
        hart_state::STATUS => (status(exit, first), Next::Resume),
        hart_state::SUSPEND => suspend(exit, first, second, third),
        _ => (Err(SbiError::NotSupported), Next::Resume),
    }
}

fn start(exit: &Exit<'_>, index: u64, address: u64, opaque: u64) -> SbiResult {
    let index = usize::try_from(index).map_err(|_| SbiError::InvalidParameter)?;
    if index >= exit.vm.vcpus.len() {
        return Err(SbiError::InvalidParameter);
    }
    if !exit.vm.memory.holds(GuestPhysical::new(address)) {
        return Err(SbiError::InvalidAddress);
    }
    lifecycle::start_vcpu(exit.system, exit.vm, index, address, opaque).map_err(
        |error| match error {
            StartError::NoVcpu => SbiError::InvalidParameter,
            StartError::AlreadyAvailable => SbiError::AlreadyAvailable,
            StartError::Ends | StartError::Limited => SbiError::Failed,
        },
    )?;
    Ok(0)
}

fn status(exit: &Exit<'_>, index: u64) -> SbiResult {
    let index = usize::try_from(index).map_err(|_| SbiError::InvalidParameter)?;
    if index >= exit.vm.vcpus.len() {
        return Err(SbiError::InvalidParameter);
    }
    Ok(match exit.vm.life_cycle.lock().power(index) {
        Power::Started => hart_state::STARTED,
        Power::Stopped => hart_state::STOPPED,
        Power::StartPending { .. } | Power::Loading => hart_state::START_PENDING,
        Power::StopPending => hart_state::STOP_PENDING,
        Power::Suspended { .. } => hart_state::SUSPENDED,
    })
}

fn suspend(exit: &mut Exit<'_>, kind: u64, address: u64, opaque: u64) -> (SbiResult, Next) {
    // The type is a 32-bit parameter.
    let resume = match kind & 0xffff_ffff {
        hart_state::RETENTIVE => None,
        hart_state::NON_RETENTIVE if !exit.vm.memory.holds(GuestPhysical::new(address)) => {
            return (Err(SbiError::InvalidAddress), Next::Resume);
        }
        hart_state::NON_RETENTIVE => Some((address, opaque)),
        _ => return (Err(SbiError::InvalidParameter), Next::Resume),
    };
    // An interrupt that is enabled and pending ends a suspension at once.
    let pending = interrupt_is_pending(exit);
    if pending && resume.is_none() {
        return (Ok(0), Next::Resume);
    }
    lifecycle::suspend_vcpu(exit.system, exit.vm, exit.vcpu, resume);
    (Ok(0), Next::Leave(leave_to_wait(pending)))
}

/// Answers a SUSP call. A VM that is suspended takes no hart until an interrupt that its vCPU has enabled is pending, of its timer or a device.
pub fn system_suspend(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, Next) {
    let [kind, address, opaque, ..] = call.arguments;
    if call.function != sleep::SYSTEM_SUSPEND {
        return (Err(SbiError::NotSupported), Next::Resume);
    }
    // The type is a 32-bit parameter.
    if kind & 0xffff_ffff != sleep::SUSPEND_TO_RAM {
        return (Err(SbiError::InvalidParameter), Next::Resume);
    }
    if !exit.vm.memory.holds(GuestPhysical::new(address)) {
        return (Err(SbiError::InvalidAddress), Next::Resume);
    }
    let pending = interrupt_is_pending(exit);
    let answer = lifecycle::suspend_vm(exit.system, exit.vm, exit.vcpu, (address, opaque));
    if let Err(SiblingRuns) = answer {
        return (Err(SbiError::Denied), Next::Resume);
    }
    (Ok(0), Next::Leave(leave_to_wait(pending)))
}

/// Leave of a suspended vCPU, which resumes when it is dispatched again: at once if an interrupt is pending.
const fn leave_to_wait(pending: bool) -> Leave {
    match pending {
        true => Leave::Yield,
        false => Leave::SelfWait,
    }
}

/// Answers an SRST call. A reset that is carried out does not return.
pub fn system_reset(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, Next) {
    let [kind, reason, ..] = call.arguments;
    if call.function != reset::SYSTEM_RESET {
        return (Err(SbiError::NotSupported), Next::Resume);
    }
    let (kind, reason) = (kind & 0xffff_ffff, reason & 0xffff_ffff);
    let failed = match reason {
        reset::NO_REASON => false,
        reset::SYSTEM_FAILURE => true,
        _ => return (Err(SbiError::InvalidParameter), Next::Resume),
    };
    let ending = match (kind, failed) {
        (reset::SHUTDOWN, false) => Ending::Stop(StopReason::PowerOff),
        (reset::COLD_REBOOT | reset::WARM_REBOOT, false) => Ending::Restart,
        (reset::SHUTDOWN..=reset::WARM_REBOOT, true) => Ending::Fail(StopReason::SystemFailure),
        _ => return (Err(SbiError::InvalidParameter), Next::Resume),
    };
    let keeps_memory = ending == Ending::Restart && kind == reset::WARM_REBOOT;
    exit.vm.keeps_memory.store(keeps_memory, Ordering::Relaxed);
    // The VM runs, so it can end; if another vCPU has asked first, that request stands.
    let _ = lifecycle::end(exit.system, exit.vm, ending, Originator::Guest);
    (Ok(0), Next::Reconsider)
}
