//! SBI HSM and SRST: the power of a guest's harts, and of the guest.

use abi::monitor::StopReason;
use scheduler::Leave;

use super::call::{Call, SbiError, SbiResult};
use crate::memory::address::GuestPhysical;
use crate::run::exits::exit::{Exit, Next, interrupt_is_pending};
use crate::system::lifecycle;
use crate::vm::lifecycle::life::{Ending, Originator, Power, StartError};

const STARTED: u64 = 0;
const STOPPED: u64 = 1;
const START_PENDING: u64 = 2;
const STOP_PENDING: u64 = 3;
const SUSPENDED: u64 = 4;

/// Suspend types: bit 31 set loses the registers.
const RETENTIVE: u64 = 0;
const NON_RETENTIVE: u64 = 0x8000_0000;

/// Answers an HSM call.
pub fn hart_state(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, Next) {
    let [first, second, third, ..] = call.arguments;
    match call.function {
        0 => (start(exit, first, second, third), Next::Resume),
        1 => {
            // A sibling may start the vCPU again only after it has left its hart.
            lifecycle::stop_vcpu(exit.system, exit.vm, exit.vcpu);
            (Ok(0), Next::Leave(Leave::Stopped))
        }
        2 => (status(exit, first), Next::Resume),
        3 => suspend(exit, first, second, third),
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
            StartError::Ends => SbiError::Failed,
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
        Power::Started => STARTED,
        Power::Stopped => STOPPED,
        Power::StartPending { .. } | Power::Loading => START_PENDING,
        Power::StopPending => STOP_PENDING,
        Power::Suspended { .. } => SUSPENDED,
    })
}

fn suspend(exit: &mut Exit<'_>, kind: u64, address: u64, opaque: u64) -> (SbiResult, Next) {
    // The type is a 32-bit parameter.
    let resume = match kind & 0xffff_ffff {
        RETENTIVE => None,
        NON_RETENTIVE if !exit.vm.memory.holds(GuestPhysical::new(address)) => {
            return (Err(SbiError::InvalidAddress), Next::Resume);
        }
        NON_RETENTIVE => Some((address, opaque)),
        _ => return (Err(SbiError::InvalidParameter), Next::Resume),
    };
    // An interrupt that is enabled and pending ends a suspension at once.
    let pending = interrupt_is_pending(exit);
    if pending && resume.is_none() {
        return (Ok(0), Next::Resume);
    }
    lifecycle::suspend_vcpu(exit.system, exit.vm, exit.vcpu, resume);
    // The vCPU resumes when it is dispatched again.
    let how = if pending {
        Leave::Yield
    } else {
        Leave::SelfWait
    };
    (Ok(0), Next::Leave(how))
}

/// Answers an SRST call. A reset that is carried out does not return.
pub fn system_reset(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, Next) {
    let [kind, reason, ..] = call.arguments;
    if call.function != 0 {
        return (Err(SbiError::NotSupported), Next::Resume);
    }
    let (kind, reason) = (kind & 0xffff_ffff, reason & 0xffff_ffff);
    let failed = match reason {
        0 => false,
        1 => true,
        _ => return (Err(SbiError::InvalidParameter), Next::Resume),
    };
    let ending = match (kind, failed) {
        (0, false) => Ending::Stop(StopReason::PowerOff),
        (1 | 2, false) => Ending::Restart,
        (0..=2, true) => Ending::Fail(StopReason::SystemFailure),
        _ => return (Err(SbiError::InvalidParameter), Next::Resume),
    };
    // The VM runs, so it can end; if another vCPU has asked first, that request stands.
    let _ = lifecycle::end(exit.system, exit.vm, ending, Originator::Guest);
    (Ok(0), Next::Reconsider)
}
