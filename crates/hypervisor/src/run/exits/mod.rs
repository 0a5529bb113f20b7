//! Why a guest was left, and what is done about it.

mod inject;
mod instructions;
mod memory;
mod sbi;
mod spins;

use abi::monitor::ExitCause;
use scheduler::Leave;

use crate::hart::counters::hart_counters::{self, HartCounters};
use crate::hart::csr::{self, exception, number};
use crate::run;
use crate::run::float;
use crate::run::harts::Hart;
use crate::run::system::Hypervisor;
use crate::vm::Vm;
use crate::vm::accounts::Books;
use crate::vm::vcpu::{Registers, Vcpu};

/// scause of the interrupt of a counter that has passed zero (Sscofpmf).
const COUNTER_OVERFLOW: u64 = csr::interrupt::CAUSE | 13;

/// What follows an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The guest goes on.
    Resume,
    /// The scheduler is asked whether it may.
    Reconsider,
    /// The vCPU waits for its own interrupts, on the hart if it may.
    Wait,
    /// The vCPU leaves the hart.
    Leave(Leave),
}

/// A guest that has just been left, with everything that its exit may concern.
#[derive(Debug)]
pub struct Exit<'a> {
    pub system: &'a Hypervisor,
    pub hart: &'a Hart,
    pub vm: &'a Vm,
    pub vcpu: &'a Vcpu,
    pub registers: &'a mut Registers,
    pub books: Books<'a>,
}

/// Whether an interrupt that the guest has enabled is pending, of whatever number: its timer, its file, a software interrupt, a
/// counter, the notification. Then it does not wait.
pub fn interrupt_is_pending(exit: &mut Exit<'_>) -> bool {
    // A counter that has just passed zero is shown before anything is asked.
    exit.registers.counters.note_overflows(&mut HartCounters);
    csr::read::<{ number::VSIP }>() & csr::read::<{ number::VSIE }>() != 0
}

/// Handles the exit that has just happened on this hart.
pub fn handle(
    system: &Hypervisor,
    hart: &Hart,
    vm: &Vm,
    vcpu: &Vcpu,
    registers: &mut Registers,
    books: Books<'_>,
) -> (ExitCause, Next) {
    let cause = csr::read::<{ number::SCAUSE }>();
    if cause & csr::interrupt::CAUSE != 0 {
        registers.counters.note_overflows(&mut HartCounters);
        if cause == COUNTER_OVERFLOW {
            hart_counters::acknowledge();
            return (ExitCause::CounterOverflow, Next::Resume);
        }
        return (run::attend(system, hart, true), Next::Reconsider);
    }
    let mut exit = Exit {
        system,
        hart,
        vm,
        vcpu,
        registers,
        books,
    };
    match cause {
        exception::ECALL_FROM_VS => sbi::call(&mut exit),
        exception::VIRTUAL_INSTRUCTION => instructions::virtual_instruction(&mut exit),
        exception::FETCH_GUEST_PAGE | exception::LOAD_GUEST_PAGE | exception::STORE_GUEST_PAGE => {
            memory::guest_page_fault(&mut exit, cause)
        }
        exception::ILLEGAL_INSTRUCTION if float::give(hart, vcpu.id, exit.registers) => {
            (ExitCause::IllegalInstruction, Next::Resume)
        }
        _ => {
            // Everything else is delegated where the hart can delegate; where it cannot, the guest gets it from here.
            inject::exception(exit.registers, cause, csr::read::<{ number::STVAL }>());
            let name = match cause {
                exception::ILLEGAL_INSTRUCTION => ExitCause::IllegalInstruction,
                _ => ExitCause::Other,
            };
            (name, Next::Resume)
        }
    }
}
