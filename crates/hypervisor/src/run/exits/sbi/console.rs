//! SBI DBCN: the debug console, which shares the VM's console with its UART.

use riscv::sbi::debug_console::{READ, WRITE, WRITE_BYTE};
use scheduler::Leave;

use super::call::{Call, SbiError, SbiResult};
use crate::memory::address::GuestPhysical;
use crate::memory::guest::GuestBytes;
use crate::memory::physical::Physical;
use crate::run::exits::exit::{Exit, Next};

/// Most bytes of one call; the guest reads how many were taken, and calls again.
const LONGEST: usize = 256;

/// Answers a DBCN call. A write without any room is repeated after others have had the hart.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, Next) {
    let [length, low, high, ..] = call.arguments;
    let room = exit.vm.console_room() as u64;
    match call.function {
        WRITE | WRITE_BYTE if room == 0 => {
            let context = &mut exit.state.context;
            context.program_counter = context.program_counter.wrapping_sub(4);
            (Ok(length), Next::Leave(Leave::Yield))
        }
        WRITE => (write(exit, length, room, low, high), Next::Resume),
        READ => (read(exit, length, low, high), Next::Resume),
        WRITE_BYTE => {
            exit.vm.print(&[length as u8]);
            (Ok(0), Next::Resume)
        }
        _ => (Err(SbiError::NotSupported), Next::Resume),
    }
}

fn write(exit: &Exit<'_>, length: u64, room: u64, low: u64, high: u64) -> SbiResult {
    let taken = length.min(LONGEST as u64).min(room);
    let bytes = buffer(exit, length, low, high)?;
    let mut copy = [0; LONGEST];
    let copy = &mut copy[..taken as usize];
    for (to, from) in copy.iter_mut().zip(bytes.iter(&Physical::default())) {
        *to = from;
    }
    exit.vm.print(copy);
    Ok(taken)
}

fn read(exit: &Exit<'_>, length: u64, low: u64, high: u64) -> SbiResult {
    let memory = buffer(exit, length, low, high)?;
    let mut count = 0;
    while count < length.min(LONGEST as u64)
        && let Some(byte) = exit.vm.typed()
    {
        memory.write(count, byte, &Physical::default());
        count += 1;
    }
    Ok(count)
}

/// The guest's buffer, all of which must be its memory.
fn buffer<'a>(
    exit: &Exit<'a>,
    length: u64,
    low: u64,
    high: u64,
) -> Result<GuestBytes<'a>, SbiError> {
    if high != 0 {
        return Err(SbiError::InvalidParameter);
    }
    exit.vm
        .memory
        .bytes(GuestPhysical::new(low), length)
        .ok_or(SbiError::InvalidParameter)
}
