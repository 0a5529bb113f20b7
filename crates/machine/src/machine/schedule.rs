//! The order in which harts run: in turn, a quantum each.

use super::Machine;
use crate::checkpoint::Marker;
use crate::code::BlockLimit;
use crate::device::{Cycles, Power};
use crate::execute::{Fast, Gear, Measured, run};
use crate::hart::{Cause, Exception, Expiry, Hart, Wait};
use crate::system::System;
use crate::timing::LINE_SHIFT;
use crate::trace::{Happening, WaitEnd};

/// The encoding of WRS.NTO: the trap value when it has waited too long.
const WRS_NTO: u64 = 0x00d0_0073;

/// Instructions of a constrained loop of LR and SC, at most.
const CONSTRAINED: u64 = 16;

/// Where a run ends if nothing else ends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// After this many more instructions of all harts together, at the end of a quantum; or, while none
    /// is retired, after as many more exceptions: a trap handler that traps itself retires nothing.
    pub instructions: Option<u64>,
    /// At this machine time in cycles, at the end of a quantum.
    pub cycles: Option<u64>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The computer was switched off.
    PowerOff,
    /// The computer was switched off with a code that is not zero, or a bare program ended.
    Exit(u64),
    /// The computer asked to be reset.
    Reset,
    /// The limit of instructions or cycles is reached.
    Limit,
    /// The text that [`Machine::stop_at`] named has been seen.
    Marker,
    /// A hart is where a debugger wants it to stop: [`crate::gdb`].
    Debugger,
    /// Every hart waits and nothing will ever wake one.
    Idle,
}

impl Machine {
    /// Runs until the computer is switched off or a limit is reached.
    pub fn run(&mut self, limit: Limit) -> Stop {
        if self.system.timing.is_some() {
            self.run_in::<Measured>(limit)
        } else {
            self.run_in::<Fast>(limit)
        }
    }

    fn run_in<G: Gear>(&mut self, limit: Limit) -> Stop {
        let mut blocks = self.config.blocks;
        if G::MEASURED {
            // A block is charged for one line.
            blocks = BlockLimit {
                boundary_shift: LINE_SHIFT,
                ..blocks
            };
        }
        if self.is_stepped() {
            blocks.instructions = 1;
        }
        if self.system.memory.code.limit() != blocks {
            self.system.memory.discard_all_code();
            self.system.memory.code.set_limit(blocks);
        }
        let last_instruction = limit
            .instructions
            .map(|more| self.retired().saturating_add(more));
        let exceptions_before = limit.instructions.map_or(0, |_| self.exceptions());
        let mut retired = 0;
        loop {
            if let Some(stop) = self.quantum::<G>() {
                return stop;
            }
            if self.marker.as_ref().is_some_and(Marker::is_seen) {
                self.marker = None;
                return Stop::Marker;
            }
            if limit.cycles.is_some_and(|cycles| self.now >= cycles) {
                return Stop::Limit;
            }
            if let (Some(last), Some(most)) = (last_instruction, limit.instructions) {
                let before = std::mem::replace(&mut retired, self.retired());
                let trapped = || self.exceptions() - exceptions_before;
                if retired >= last || retired == before && trapped() >= most {
                    return Stop::Limit;
                }
            }
            if !self.skip_idle_time(limit.cycles.unwrap_or(u64::MAX)) {
                return Stop::Idle;
            }
        }
    }

    /// Gives every hart its turn.
    fn quantum<G: Gear>(&mut self) -> Option<Stop> {
        let end = self.now.saturating_add(self.config.quantum);
        let system = &mut self.system;
        // A debugger may have stopped a hart in the middle of its turn, and goes on with it.
        let interrupted = self.interrupted.take();
        if interrupted.is_none() && system.devices.next_event() <= Cycles(self.now) {
            system.devices.tick(Cycles(self.now), &mut system.memory);
        }
        let mut stop = None;
        let first = interrupted.unwrap_or(0);
        for (index, hart) in self.harts.iter_mut().enumerate().skip(first) {
            if hart.is_held() {
                hart.cycles = hart.cycles.max(end);
                continue;
            }
            hart.forget_restricted_stores(&system.memory);
            if hart.wait != Wait::Nothing {
                let start = self.now;
                wake(hart, system, start, end);
            }
            run::<G>(hart, system, end);
            if hart.stops.is_some() && hart.has_stopped() {
                self.interrupted = Some(index);
                return Some(Stop::Debugger);
            }
            if hart.wait != Wait::Nothing && hart.cycles < end {
                wake(hart, system, hart.cycles, end);
                run::<G>(hart, system, end);
            }
            finish_reserved::<G>(hart, system);
            if system.memory.take_host_written()
                && let Some(code) = self.host.serve(&mut system.memory)
            {
                stop = Some(Stop::Exit(code));
            }
            match system.devices.power() {
                Some(Power::Off) => stop = Some(Stop::PowerOff),
                Some(Power::Fail(code)) => stop = Some(Stop::Exit(code.into())),
                Some(Power::Reset) => stop = Some(Stop::Reset),
                None => {}
            }
            if stop.is_some() {
                break;
            }
        }
        while system.devices.take_changed().is_some() {}
        let seen = system.memory.restrictions();
        if seen > 0 {
            for hart in &mut self.harts {
                hart.forget_restricted_stores(&system.memory);
                hart.restrictions_seen = 0;
            }
            system.memory.forget_restrictions();
        }
        self.now = end;
        if self.sink.is_some() {
            self.hand_over_events();
        }
        stop
    }

    /// While every hart waits, moves time to where something can happen; `false` if nothing can.
    fn skip_idle_time(&mut self, latest: u64) -> bool {
        let mut event = self.system.devices.next_event().0;
        for hart in &self.harts {
            let own = match hart.wait {
                Wait::Nothing => return true,
                Wait::Interrupt => u64::MAX,
                Wait::Store { .. } if self.system.memory.is_hit(hart.id) => return true,
                Wait::Store { deadline, .. } => deadline,
            };
            if self.system.devices.wires(hart.id) != hart.wires {
                return true;
            }
            event = event.min(own).min(hart.timer_deadline);
        }
        if event == u64::MAX {
            return false;
        }
        // Only whole quanta are skipped: the harts' turns stay where they are.
        let quanta = event.min(latest).saturating_sub(self.now) / self.config.quantum;
        let skipped = quanta * self.config.quantum;
        self.now += skipped;
        for hart in &mut self.harts {
            let before = hart.cycles;
            hart.cycles = hart.cycles.max(self.now);
            hart.note_wait(hart.cycles - before);
        }
        true
    }

    /// Takes what a bare program has written to its host.
    pub fn take_host_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.host.output)
    }
}

/// Lets a hart that is between LR and SC at the end of its turn go on to the SC, and ends the reservation:
/// what others store from here on is not compared with it.
///
/// A loop of LR and SC that is constrained has at most 16 instructions ("Eventual Success of
/// Store-Conditional Instructions"). With the turn's end among them it might never succeed.
fn finish_reserved<G: Gear>(hart: &mut Hart, system: &mut System) {
    let retired = hart.retired;
    for _ in 0..CONSTRAINED {
        if hart.reservation.is_none()
            || hart.wait != Wait::Nothing
            || hart.retired - retired >= CONSTRAINED
            || system.memory.host_written()
            || system.devices.power().is_some()
        {
            break;
        }
        let next = hart.cycles + 1;
        run::<G>(hart, system, next);
    }
    hart.reservation = None;
}

/// Ends a hart's wait between `start` and `end` if there is a reason to, else lets the time pass.
fn wake(hart: &mut Hart, system: &mut System, start: u64, end: u64) {
    let begun = hart.cycles;
    hart.cycles = hart.cycles.max(start);
    let wires = system.devices.wires(hart.id);
    let hit = system.memory.is_hit(hart.id);
    let changed = wires != hart.wires;
    if changed {
        hart.wires = wires;
        if wires.supervisor_software_edge {
            hart.csrs.mip |= crate::csr::field::interrupt::SSI;
            system.devices.acknowledge_software_edge(hart.id);
            hart.wires.supervisor_software_edge = false;
        }
    }
    let mut expired = None;
    let mut end_of_wait = if hit {
        WaitEnd::Store
    } else {
        WaitEnd::Interrupt
    };
    let mut woken = hit || (changed && hart.has_wakeup(system));
    while !woken {
        let (deadline, expiry) = match hart.wait {
            Wait::Store { deadline, expiry } => (deadline, Some(expiry)),
            _ => (u64::MAX, None),
        };
        let next = deadline.min(hart.timer_deadline);
        if next >= end {
            hart.cycles = hart.cycles.max(end);
            hart.note_wait(hart.cycles - begun);
            return;
        }
        hart.cycles = hart.cycles.max(next);
        if hart.cycles >= hart.timer_deadline {
            hart.refresh_timers(system);
        }
        woken = hart.has_wakeup(system);
        if !woken && hart.cycles >= deadline {
            end_of_wait = WaitEnd::Time;
            expired = expiry;
            woken = true;
        }
    }
    hart.note_wait(hart.cycles - begun);
    hart.wait = Wait::Nothing;
    system.memory.unwatch(hart.id);
    hart.note(|_| Happening::Wake { end: end_of_wait });
    if let Some(expiry) = expired {
        expire(hart, system, expiry);
    }
}

/// The end of the time that a WRS may wait.
fn expire(hart: &mut Hart, system: &System, expiry: Expiry) {
    let cause = match expiry {
        Expiry::Complete => return,
        Expiry::Illegal => Cause::IllegalInstruction,
        Expiry::Virtual => Cause::VirtualInstruction,
    };
    // The instruction does not retire after all.
    hart.pc = hart.pc.wrapping_sub(4);
    hart.retired = hart.retired.wrapping_sub(1);
    let from = hart.mode();
    hart.take_exception(Exception::new(cause, WRS_NTO));
    hart.charge_trap(system, from);
}
