//! Causes of exits, and their handling.

pub mod exit;
mod inject;
mod instructions;
mod memory;
mod paging;
mod sbi;
pub(super) mod spins;

use self::exit::{Exit, Next};
use crate::hart::counters::hart_counters::{self, HartCounters};
use crate::hart::csr::{self, exception, number};
use crate::run::host_interrupts::handle_host_interrupts;
use crate::run::registers;
use crate::run::software_events;
use abi::monitor::ExitCause;
use riscv::interrupt;

/// scause of the interrupt of a counter that has passed zero (Sscofpmf).
const COUNTER_OVERFLOW: u64 = interrupt::cause(interrupt::COUNTER_OVERFLOW);

/// Handles an exit on this hart. Inlined in its one caller; the functions that it calls are not, so that a hart's loop stays small.
#[inline(always)]
pub fn handle(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    let cause = csr::read::<{ number::SCAUSE }>();
    if cause & interrupt::CAUSE != 0 {
        return interrupt(exit, cause);
    }
    match cause {
        exception::ECALL_FROM_VS => sbi::call(exit),
        exception::VIRTUAL_INSTRUCTION => instructions::virtual_instruction(exit),
        exception::FETCH_GUEST_PAGE | exception::LOAD_GUEST_PAGE | exception::STORE_GUEST_PAGE => {
            memory::guest_page_fault(exit, cause)
        }
        // Page faults are delegated except with shadow tables.
        exception::FETCH_PAGE | exception::LOAD_PAGE | exception::STORE_PAGE => {
            paging::page_fault(exit, cause)
        }
        _ => other_exception(exit, cause),
    }
}

/// Handles an interrupt that ended the guest's stay.
#[inline(never)]
fn interrupt(exit: &mut Exit<'_>, cause: u64) -> (ExitCause, Next) {
    if exit.state.counters.note_overflows(&mut HartCounters) {
        software_events::note_overflow(exit.vm, exit.vcpu);
    }
    if cause == COUNTER_OVERFLOW {
        hart_counters::acknowledge();
        return (ExitCause::CounterOverflow, Next::Resume);
    }
    let handled = handle_host_interrupts(exit.system, exit.hart);
    let next = match handled.devices_alone {
        true => Next::Resume,
        false => Next::Reconsider,
    };
    (handled.cause, next)
}

/// Loads registers of the guest that it lacked, or injects an exception that the hart does not delegate.
#[cold]
#[inline(never)]
fn other_exception(exit: &mut Exit<'_>, cause: u64) -> (ExitCause, Next) {
    if cause == exception::DOUBLE_TRAP {
        inject::double_trap(exit);
        return (ExitCause::Other, Next::Reconsider);
    }
    let illegal = cause == exception::ILLEGAL_INSTRUCTION;
    let value = csr::read::<{ number::STVAL }>();
    if !(illegal && registers::give(exit.hart, exit.vcpu, exit.state, value)) {
        // All other exceptions are delegated if the hart can delegate them, and injected here if it cannot.
        inject::exception(exit, cause, value);
    }
    let name = match illegal {
        true => ExitCause::IllegalInstruction,
        false => ExitCause::Other,
    };
    (name, Next::Resume)
}
