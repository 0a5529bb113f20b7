//! Running a hart.
//!
//! [`block`] goes from block to block; [`step`] knows the room of each instruction. The costs are a matter of
//! the mode, a type parameter of the loop, so that the functional mode pays nothing for the other.

mod access;
mod atomic;
mod block;
mod cache_block;
mod control;
mod fetch;
mod float;
mod guest;
mod integer;
mod measure;
mod pause;
mod position;
mod shadow_stack;
mod step;
mod swap;
mod system;
#[cfg(test)]
mod tests;
mod transfer;
mod translated;
mod vector;

pub use block::execute;

use crate::base::Cycles;
use crate::hart::{Hart, Wait};
use crate::system::System;

/// How time is accounted.
pub trait Mode {
    /// True if the timing models are asked.
    const TIMED: bool;
}

/// Functional: every instruction costs the same.
#[derive(Debug, Clone, Copy)]
pub struct Functional;

impl Mode for Functional {
    const TIMED: bool = false;
}

/// With TLBs, caches, walks and the costs of single instructions.
#[derive(Debug, Clone, Copy)]
pub struct Timing;

impl Mode for Timing {
    const TIMED: bool = true;
}

/// Why the execution loop came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The limit of the hart's deadlines is reached, or something became due earlier.
    Limit,
    /// An instruction raised an exception: pc is that instruction's.
    Trap,
    /// The instruction asks for a look at interrupts and waits.
    Stop,
}

/// Has the checker of fences compare the hart's next fetch.
fn forget_fetch(hart: &mut Hart) {
    if let Some(shadow) = &mut hart.shadow {
        shadow.forget_fetch();
    }
}

/// Runs a hart until its time is `deadline` or it waits, and takes its traps; whether it has given the
/// rest of its turn away.
pub fn run<M: Mode>(hart: &mut Hart, system: &mut System, deadline: u64) -> bool {
    // Other harts, devices and the host may have stored since the hart's last turn.
    forget_fetch(hart);
    while hart.cycles < deadline && hart.wait == Wait::Nothing {
        if let Some(hits) = system.watchful
            && (system.devices.any_irq_changed() || system.memory.hits() > hits)
        {
            return false;
        }
        let irq_levels = system.devices.irq_levels(hart.id);
        if hart.irq_levels != irq_levels {
            hart.irq_levels = irq_levels;
            hart.look_at_interrupts = true;
        }
        if hart.irq_levels.supervisor_software_edge {
            hart.csrs.mip |= crate::csr::field::interrupt::SSI;
            hart.look_at_interrupts = true;
            system.devices.acknowledge_software_edge(hart.id);
            hart.irq_levels.supervisor_software_edge = false;
        }
        if hart.cycles >= hart.deadlines.timer() {
            hart.refresh_timers(system);
        }
        if hart.cycles >= hart.deadlines.overflow() {
            hart.check_overflow();
        }
        if std::mem::take(&mut hart.look_at_interrupts)
            && let Some(interrupt) = hart.interrupt_to_take(system)
        {
            let from = hart.mode();
            hart.take_interrupt(interrupt);
            hart.charge_trap(system, from);
        }
        let event = system.devices.next_event();
        if event <= Cycles(hart.cycles) {
            system.tick(Cycles(hart.cycles));
            forget_fetch(hart);
            continue;
        }
        hart.deadlines.begin(deadline, event.0);
        if hart.stops.is_some() && hart.stops_here() {
            return false;
        }
        if hart.shadow.is_some() {
            // Block by block, so that the checker can say where the hart is.
            hart.stop_soon();
        }
        let (watched, mode) = (hart.watched, hart.mode());
        if execute::<M>(hart, system) == Exit::Trap {
            if M::TIMED && std::mem::take(&mut hart.yielded) {
                return true;
            }
            let exception = hart.exception;
            let from = hart.mode();
            hart.finish_exception(system, exception);
            hart.charge_trap(system, from);
        } else if watched {
            hart.end_watched(mode);
        }
        if system.devices.power().is_some() || system.memory.host_written() {
            return false;
        }
    }
    false
}
