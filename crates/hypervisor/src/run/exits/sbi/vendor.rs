//! Partita's own SBI extension (`abi::sbi`).

use abi::sbi::{Function, VERSION_VALUE};

use scheduler::Leave;

use super::call::{Call, SbiError, SbiResult};
use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};
use crate::memory::reclaim::{MAX_PAGES_A_STEP, Step};
use crate::run::exits::exit::{Exit, Next};
use crate::run::exits::spins;
use crate::run::spin;
use crate::system::reclaim;
use crate::vm::reported_allocation::AreaError;

/// Outcome of a call that gives pages back.
enum Returned {
    /// Number of bytes handled.
    Now(u64),
    /// To be tried again.
    Later,
}

/// Takes back so many bytes at an address of the guest.
fn return_pages(exit: &Exit<'_>, [address, bytes, ..]: [u64; 6]) -> Result<Returned, SbiError> {
    let memory = &exit.vm.memory;
    if !memory.is_demand_paged() {
        return Err(SbiError::NotSupported);
    }
    let base = GuestPhysical::new(address);
    let pages = GuestRegion::new(base, bytes).filter(|pages| memory.region().covers(*pages));
    let pages = pages.ok_or(SbiError::InvalidAddress)?;
    if !base.is_aligned(PAGE_SIZE) || !bytes.is_multiple_of(PAGE_SIZE) {
        return Err(SbiError::InvalidParameter);
    }
    let now = bytes.min(MAX_PAGES_A_STEP * PAGE_SIZE);
    let pages = GuestRegion::new(base, now).unwrap_or(pages);
    let trapped = exit.vm.trapped_devices.lock();
    // Earlier pages go first. Pages that have gone already are given again when the call is repeated, which changes nothing.
    let is_given = !exit.vm.reclaim.lock().is_busy() && exit.vm.reclaim.lock().give(pages);
    match reclaim::step(exit.system, exit.vm, &trapped) {
        Step::Done if is_given => Ok(Returned::Now(now)),
        _ => Ok(Returned::Later),
    }
}

/// Answers a call of the extension. A call without an answer is repeated with the same arguments after others have had the hart.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> (Option<SbiResult>, Next) {
    let function = usize::try_from(call.function)
        .ok()
        .and_then(Function::from_id);
    let result = match function {
        Some(Function::Version) => Ok(VERSION_VALUE),
        Some(Function::Spin) => {
            let [address, seen, ticket, ..] = call.arguments;
            let named = spin::by_call(exit.vm, address, seen, ticket);
            return (Some(Ok(0)), spins::spin(exit, named));
        }
        Some(Function::Allocation) => Ok(exit.vm.reported_allocation.lock().code()),
        Some(Function::Report) => {
            exit.vm.report(call.arguments[0], call.arguments[1]);
            Ok(0)
        }
        Some(Function::Heartbeat) => {
            exit.vm.heartbeat(call.arguments[0]);
            Ok(0)
        }
        Some(Function::SetCommunicationArea) => {
            let mut reported = exit.vm.reported_allocation.lock();
            reported
                .set_area(call.arguments[0], (&exit.vm.memory, &exit.hart.memory()))
                .map(|()| 0)
                .map_err(|error| match error {
                    AreaError::InvalidAddress => SbiError::InvalidAddress,
                    AreaError::NoFrame => SbiError::Failed,
                })
        }
        Some(Function::ReturnPages) => match return_pages(exit, call.arguments) {
            Ok(Returned::Now(bytes)) => Ok(bytes),
            Ok(Returned::Later) => {
                let context = &mut exit.state.context;
                context.program_counter = context.program_counter.wrapping_sub(4);
                return (None, Next::Leave(Leave::Yield));
            }
            Err(error) => Err(error),
        },
        None => Err(SbiError::NotSupported),
    };
    (Some(result), Next::Resume)
}
