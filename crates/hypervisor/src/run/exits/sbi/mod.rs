//! The supervisor binary interface that guests are offered (RISC-V SBI specification 3.0).

mod base;
mod call;
mod console;
mod counters;
mod debug_triggers;
mod features;
mod fences;
mod power;
mod software_events;
mod steal_time;
mod vendor;

use abi::monitor::ExitCause;
use riscv::sbi::{SEND_IPI, SET_TIMER};
use scheduler::groups::NumberSet;

use self::call::{Call, SbiError, SbiResult, extension, named};
use super::exit::{Exit, Next};
use crate::hart::counters::FirmwareEvent;
use crate::run::guest_timer;
use crate::system::interrupt_port;

/// Handles an environment call of the guest.
#[inline(never)]
pub fn call(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    let context = &mut exit.state.context;
    let call = Call {
        function: context.get(16),
        arguments: core::array::from_fn(|index| context.get(10 + index as u8)),
    };
    let which = context.get(17);
    context.program_counter = context.program_counter.wrapping_add(4);
    exit.cpu_time.count_call();

    let mut next = Next::Resume;
    // Value beside an error.
    let mut failing = 0;
    let (cause, result) = match which {
        extension::BASE => (ExitCause::SbiBase, base::call(exit, &call)),
        extension::TIME => (ExitCause::SbiTime, time(exit, &call)),
        extension::IPI => (ExitCause::SbiIpi, send_ipi(exit, &call)),
        extension::RFENCE => (ExitCause::SbiRfence, fences::call(exit, &call)),
        extension::DBCN => {
            let (result, follows) = console::call(exit, &call);
            next = follows;
            if next != Next::Resume {
                // The guest repeats the call with the same arguments.
                return (ExitCause::SbiDbcn, next);
            }
            (ExitCause::SbiDbcn, result)
        }
        extension::PMU => match counters::call(exit, &call) {
            Some(result) => (ExitCause::SbiPmu, result),
            None => return (ExitCause::SbiPmu, Next::Reconsider),
        },
        extension::HSM => {
            let (result, follows) = power::hart_state(exit, &call);
            next = follows;
            (ExitCause::SbiHsm, result)
        }
        extension::SRST => {
            let (result, follows) = power::system_reset(exit, &call);
            next = follows;
            (ExitCause::SbiSrst, result)
        }
        extension::SUSP => {
            let (result, follows) = power::system_suspend(exit, &call);
            next = follows;
            (ExitCause::SbiHsm, result)
        }
        extension::FWFT => (ExitCause::SbiOther, features::call(exit, &call)),
        extension::SSE => match software_events::call(exit, &call) {
            Some(result) => (ExitCause::SbiOther, result),
            None => return (ExitCause::SbiOther, Next::Resume),
        },
        extension::DBTR => {
            let (result, place) = debug_triggers::call(exit, &call);
            failing = place;
            (ExitCause::SbiOther, result)
        }
        extension::STA => (ExitCause::SbiOther, steal_time::call(exit, &call)),
        extension::PARTITA => {
            let (result, follows) = vendor::call(exit, &call);
            next = follows;
            let Some(result) = result else {
                return (ExitCause::SbiPartita, next);
            };
            (ExitCause::SbiPartita, result)
        }
        _ => (ExitCause::SbiOther, Err(SbiError::NotSupported)),
    };
    let (error, value) = match result {
        Ok(value) => (0, value),
        Err(error) => (error as i64 as u64, failing),
    };
    exit.state.context.set(10, error);
    exit.state.context.set(11, value);
    (cause, next)
}

/// TIME: the deadline goes to the guest's own comparator (Sstc), or to the hart's timer.
fn time(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    if call.function != SET_TIMER {
        return Err(SbiError::NotSupported);
    }
    exit.state.counters.count(FirmwareEvent::SetTimer);
    guest_timer::set(exit.hart, exit.vm, exit.state, call.arguments[0]);
    Ok(0)
}

/// IPI: a software interrupt for each named vCPU.
fn send_ipi(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    if call.function != SEND_IPI {
        return Err(SbiError::NotSupported);
    }
    exit.state.counters.count(FirmwareEvent::IpiSent);
    let mut woken = NumberSet::EMPTY;
    for vcpu in named(exit, call.arguments[0], call.arguments[1])? {
        vcpu.raise_software_interrupt();
        exit.cpu_time.count_injected();
        interrupt_port::kick_where_it_runs(exit.system, vcpu);
        // The caller runs: it finds its own interrupt before it waits.
        if vcpu.id != exit.vcpu.id {
            woken.insert(vcpu.id);
        }
    }
    if !woken.is_empty() {
        exit.system.wake_all(&woken);
    }
    Ok(0)
}
