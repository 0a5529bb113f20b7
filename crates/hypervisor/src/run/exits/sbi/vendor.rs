//! Partita's own SBI extension (`abi::sbi`).

use abi::sbi::{Function, VERSION_VALUE};

use super::call::{Call, SbiError, SbiResult};
use crate::run::exits::exit::{Exit, Next};
use crate::run::exits::spins;
use crate::run::spin;
use crate::vm::told::NoArea;

/// Answers a call of the extension.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, Next) {
    let function = usize::try_from(call.function)
        .ok()
        .and_then(Function::from_id);
    let result = match function {
        Some(Function::Version) => Ok(VERSION_VALUE),
        Some(Function::Spin) => {
            let [address, seen, ticket, ..] = call.arguments;
            let told = spin::told(exit.vm, address, seen, ticket);
            return (Ok(0), spins::spin(exit, told));
        }
        Some(Function::Allocation) => Ok(exit.vm.told.lock().code()),
        Some(Function::Report) => {
            exit.vm.report(call.arguments[0], call.arguments[1]);
            Ok(0)
        }
        Some(Function::Heartbeat) => {
            exit.vm.heartbeat(call.arguments[0]);
            Ok(0)
        }
        Some(Function::SetCommunicationArea) => {
            let mut told = exit.vm.told.lock();
            told.set_area(&exit.vm.memory, call.arguments[0])
                .map(|()| 0)
                .map_err(|NoArea| SbiError::InvalidAddress)
        }
        None => Err(SbiError::NotSupported),
    };
    (result, Next::Resume)
}
