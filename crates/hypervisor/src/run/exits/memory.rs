//! Guest page faults: accesses to emulated devices, and to what is not the guest's.

use abi::monitor::ExitCause;
use scheduler::Leave;

use super::{Exit, Next, inject};
use crate::devices::bus::{self, Owner};
use crate::devices::clock::nanoseconds;
use crate::hart;
use crate::hart::csr::{self, exception, number};
use crate::hart::decode::{Access, MemoryOperation, TrapInstruction, Trapped};
use crate::hart::unprivileged;
use crate::interrupts::softfile::Identity;
use crate::memory::address::GuestPhysical;
use crate::run::interrupt_port;

/// A fault of the G-stage.
pub fn guest_page_fault(exit: &mut Exit<'_>, cause: u64) -> (ExitCause, Next) {
    let value = csr::read::<{ number::STVAL }>();
    // htval holds the guest-physical address shifted right by 2; stval has the two lowest bits.
    let address = GuestPhysical::new(csr::read::<{ number::HTVAL }>() << 2 | value & 3);
    if cause == exception::FETCH_GUEST_PAGE {
        return refuse(exit, cause, value);
    }
    let at = exit.registers.context.program_counter;
    let known = TrapInstruction::from_htinst(csr::read::<{ number::HTINST }>());
    let operation = match known.trapped(|| unprivileged::fetch_instruction(at)) {
        Trapped::Operation(operation) => operation,
        Trapped::Gone => return (ExitCause::GuestPageFault, Next::Resume),
        Trapped::Other => return refuse(exit, cause, value),
    };
    let name = match exit.vm.settings.bus.at(address) {
        Some((Owner::Uart, offset)) => {
            if !uart(exit, operation, offset) {
                // Its console has no room: the store is done again when others have had the hart.
                return (ExitCause::MmioUart, Next::Leave(Leave::Yield));
            }
            ExitCause::MmioUart
        }
        Some((Owner::Aplic, offset)) => {
            aplic(exit, operation, offset);
            ExitCause::MmioAplic
        }
        Some((Owner::Clock, offset)) => {
            clock(exit, operation, offset);
            ExitCause::MmioOther
        }
        Some((Owner::InterruptFiles, offset)) => {
            let (vcpu, offset) = bus::interrupt_file(offset);
            interrupt_file(exit, operation, vcpu, offset);
            ExitCause::MmioImsic
        }
        Some((Owner::Direct { .. }, _)) | None => return refuse(exit, cause, value),
    };
    let context = &mut exit.registers.context;
    context.program_counter = context.program_counter.wrapping_add(operation.length);
    (name, Next::Resume)
}

/// There is nothing for this guest at the address: it takes the access fault that an empty bus gives.
fn refuse(exit: &mut Exit<'_>, cause: u64, value: u64) -> (ExitCause, Next) {
    let fault = match cause {
        exception::FETCH_GUEST_PAGE => exception::FETCH_ACCESS,
        exception::LOAD_GUEST_PAGE => exception::LOAD_ACCESS,
        _ => exception::STORE_ACCESS,
    };
    inject::exception(exit.registers, fault, value);
    (ExitCause::GuestPageFault, Next::Resume)
}

/// Carries out the access: `read` gives what a load gets, `write` takes what a store has.
fn access(
    exit: &mut Exit<'_>,
    operation: MemoryOperation,
    read: impl FnOnce(&Exit<'_>) -> u64,
    write: impl FnOnce(&Exit<'_>, u64),
) {
    match operation.access {
        Access::Load { register, .. } => {
            let value = operation.loaded(read(exit));
            exit.registers.context.set(register.number() as u8, value);
        }
        Access::Store { register } => {
            let value = operation
                .width
                .truncate(exit.registers.context.get(register.number() as u8));
            write(exit, value);
        }
    }
}

/// False where the access could not be carried out now.
fn uart(exit: &mut Exit<'_>, operation: MemoryOperation, offset: u64) -> bool {
    let mut done = true;
    access(
        exit,
        operation,
        |exit| u64::from(exit.vm.uart_read(exit.system, offset)),
        |exit, value| done = exit.vm.uart_write(exit.system, offset, value as u8),
    );
    done
}

fn aplic(exit: &mut Exit<'_>, operation: MemoryOperation, offset: u64) {
    // The domain's registers are words (AIA, "Memory-mapped control region for an interrupt domain").
    if operation.width.bytes() != 4 {
        access(exit, operation, |_| 0, |_, _| {});
        return;
    }
    access(
        exit,
        operation,
        |exit| u64::from(exit.vm.aplic_read(exit.system, offset)),
        |exit, value| exit.vm.aplic_write(exit.system, offset, value as u32),
    );
}

fn clock(exit: &mut Exit<'_>, operation: MemoryOperation, offset: u64) {
    // Its registers are words.
    let Some(clock) = exit.vm.clock.as_ref() else {
        return access(exit, operation, |_| 0, |_, _| {});
    };
    if operation.width.bytes() != 4 {
        return access(exit, operation, |_| 0, |_, _| {});
    }
    let now = nanoseconds(hart::time(), exit.system.board.timebase_hertz);
    access(
        exit,
        operation,
        |_| u64::from(clock.read(offset, now)),
        |_, value| clock.write(offset, value as u32, now),
    );
}

fn interrupt_file(exit: &mut Exit<'_>, operation: MemoryOperation, vcpu: usize, offset: u64) {
    access(
        exit,
        operation,
        |_| 0,
        |exit, value| {
            // seteipnum_le at 0, seteipnum_be at 4; all else in the page ignores writes (AIA, "Memory region for an
            // interrupt file").
            let identity = match (offset, operation.width.bytes()) {
                (0, 4) => value as u32,
                (4, 4) => (value as u32).swap_bytes(),
                _ => return,
            };
            if let Some(identity) = Identity::new(identity)
                && let Some(target) = exit.system.vcpus_of(exit.vm.id).get(vcpu)
            {
                interrupt_port::deliver(exit.system, target, identity);
            }
        },
    );
}
