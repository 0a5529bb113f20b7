//! Harts that wait, and how far the others have come.

use crate::hart::{Cause, Exception, Expiry, Hart, Mode, Wait};
use crate::system::System;
use crate::trace::{Happening, WaitEnd};

/// The encoding of WRS.NTO: the trap value when it has waited too long.
const WRS_NTO: u64 = riscv::instruction::WRS_NTO as u64;

/// The least time that another running hart has reached, for each turn of a quantum.
#[derive(Debug, Default)]
pub(super) struct Horizons {
    /// By turn: the least time of the harts whose turns come later.
    later: Vec<u64>,
    /// The least time of the harts that have had their turns and still run.
    earlier: u64,
}

impl Horizons {
    /// Looks at all harts before a quantum, in which the hart `first` goes first and turns before `begun` are over.
    pub fn begin(&mut self, harts: &[Hart], first: usize, begun: usize) {
        let count = harts.len();
        self.later.resize(count, u64::MAX);
        self.earlier = u64::MAX;
        let mut least = u64::MAX;
        for turn in (0..count).rev() {
            let place = first + turn;
            let hart = harts.get(if place < count { place } else { place - count });
            if let Some(later) = self.later.get_mut(turn) {
                *later = least;
            }
            let time = hart
                .filter(|hart| runs(hart))
                .map_or(u64::MAX, |hart| hart.cycles);
            if turn < begun {
                self.earlier = self.earlier.min(time);
            } else {
                least = least.min(time);
            }
        }
    }

    /// The least time that another running hart than that of a turn has reached.
    pub fn of(&self, turn: usize) -> u64 {
        self.later
            .get(turn)
            .map_or(self.earlier, |&later| later.min(self.earlier))
    }

    /// A hart's turn is over.
    pub fn note(&mut self, hart: &Hart) {
        if runs(hart) {
            self.earlier = self.earlier.min(hart.cycles);
        }
    }
}

fn runs(hart: &Hart) -> bool {
    hart.wait == Wait::Nothing && !hart.is_held()
}

/// Ends a hart's wait between `start` and `end` if there is a reason to, else lets the time pass. What others
/// have done they did at `signal`.
pub(super) fn wake(hart: &mut Hart, system: &mut System, (start, signal): (u64, u64), end: u64) {
    let begun = hart.cycles;
    if hart.wait == Wait::CriticalError {
        hart.cycles = begun.max(start).max(end);
        hart.note_wait(hart.cycles - begun);
        return;
    }
    let irq_levels = system.devices.irq_levels(hart.id);
    let hit = system.memory.is_hit(hart.id);
    let changed = irq_levels != hart.irq_levels;
    // The hart that has set mtime did so, at `signal`.
    let expired_timers = hart.deadlines.is_timer_expired();
    if !hit && !changed && next_end(hart).0 >= end {
        hart.cycles = hart.cycles.max(start).max(end);
        if hart.cycles > begun {
            hart.note_wait(hart.cycles - begun);
        }
        return;
    }
    hart.cycles = hart.cycles.max(if hit || changed || expired_timers {
        signal
    } else {
        start
    });
    if changed {
        hart.irq_levels = irq_levels;
        if irq_levels.supervisor_software_edge {
            hart.csrs.mip |= crate::csr::field::interrupt::SSI;
            system.devices.acknowledge_software_edge(hart.id);
            hart.irq_levels.supervisor_software_edge = false;
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
        let (next, deadline, expiry) = next_end(hart);
        if next >= end {
            hart.cycles = hart.cycles.max(end);
            hart.note_wait(hart.cycles - begun);
            return;
        }
        hart.cycles = hart.cycles.max(next);
        if hart.cycles >= hart.deadlines.timer() {
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
    if hart.mode() == Mode::HYPERVISOR
        && let Some(stretches) = &mut hart.stretches
    {
        stretches.go_on(hart.cycles);
    }
    if let Some(expiry) = expired {
        expire(hart, system, expiry);
    }
}

/// When time alone can next end a hart's wait, the end of the time that it may wait, and what happens then.
fn next_end(hart: &Hart) -> (u64, u64, Option<Expiry>) {
    let (deadline, expiry) = match hart.wait {
        Wait::Store { deadline, expiry } => (deadline, Some(expiry)),
        _ => (u64::MAX, None),
    };
    (deadline.min(hart.deadlines.timer()), deadline, expiry)
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
