//! SBI DBCN: the debug console, which shares the VM's console with its UART.

use super::{Call, SbiError, SbiResult};
use crate::exits::Exit;
use hypervisor::address::GuestPhysical;

/// At most so many bytes are taken in one call; the guest is told how many, and calls again.
const LONGEST: u64 = 256;

/// Answers a DBCN call.
pub fn call(exit: &Exit<'_>, call: &Call) -> SbiResult {
    let [length, low, high, ..] = call.arguments;
    match call.function {
        0 => {
            let length = length.min(LONGEST);
            let memory = buffer(exit, length, low, high)?;
            for byte in memory.bytes() {
                exit.vm.print(exit.system, byte);
            }
            Ok(length)
        }
        1 => {
            let length = length.min(LONGEST);
            let memory = buffer(exit, length, low, high)?;
            let mut count = 0;
            while count < length
                && let Some(byte) = exit.vm.typed()
            {
                memory.write(count, byte);
                count += 1;
            }
            Ok(count)
        }
        2 => {
            exit.vm.print(exit.system, length as u8);
            Ok(0)
        }
        _ => Err(SbiError::NotSupported),
    }
}

fn buffer(exit: &Exit<'_>, length: u64, low: u64, high: u64) -> Result<crate::vm::GuestBytes, SbiError> {
    if high != 0 {
        return Err(SbiError::InvalidParameter);
    }
    exit.vm.bytes(GuestPhysical::new(low), length).ok_or(SbiError::InvalidParameter)
}
