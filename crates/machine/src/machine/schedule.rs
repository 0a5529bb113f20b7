//! The order in which harts run: in turn, a quantum each.
//!
//! What a hart does in its turn is seen by the others up to a quantum too early or too late, so a quantum is
//! about as short as the shortest way from hart to hart. A hart that runs while all others wait is the
//! exception: its turn may be longer, because it ends where the hart does something that could wake one.

use super::waiting::wake;
use super::{HostInterface, Machine};
use crate::base::Cycles;
use crate::code::BlockLimit;
use crate::device::Marker;
use crate::device::Power;
use crate::execute::{Functional, Mode, Timing, run};
use crate::hart::{Hart, Wait};
use crate::system::System;
use crate::timing::LINE_SHIFT;

/// How many quanta the turn of a hart may have that alone does not wait.
const LONE_QUANTA: u64 = 20;

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
    /// Every hart that does not wait traps at the first instruction of its own trap handler, and will for ever.
    Stuck,
}

impl Machine {
    /// Runs until the computer is switched off or a limit is reached.
    pub fn run(&mut self, limit: Limit) -> Stop {
        if self.system.timing.is_some() {
            self.run_in::<Timing>(limit)
        } else {
            self.run_in::<Functional>(limit)
        }
    }

    fn run_in<M: Mode>(&mut self, limit: Limit) -> Stop {
        let mut blocks = self.config.blocks;
        if M::TIMED {
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
        let timing = self.system.timing.as_ref().filter(|_| M::TIMED);
        let costs = timing.map(|timing| timing.costs);
        let predicted = timing.is_some_and(|timing| timing.predicts());
        (self.system.memory.code).prepare(costs.as_ref(), predicted);
        let last_instruction = limit
            .instructions
            .map(|more| self.retired().saturating_add(more));
        let exceptions_before = limit.instructions.map_or(0, |_| self.exceptions());
        let mut retired = 0;
        loop {
            if let Some(stop) = self.quantum::<M>() {
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
            if !self.skip_idle_time::<M>(limit.cycles.unwrap_or(u64::MAX)) {
                return Stop::Idle;
            }
            if self.is_stuck() {
                return Stop::Stuck;
            }
        }
    }

    /// Gives every hart its turn.
    fn quantum<M: Mode>(&mut self) -> Option<Stop> {
        // A debugger may have stopped a hart in the middle of its turn, and goes on with it.
        let interrupted = self.interrupted.take();
        if interrupted.is_none() && self.system.devices.next_event() <= Cycles(self.now) {
            self.system.tick(Cycles(self.now));
        }
        let mut end = self.now.saturating_add(self.turn::<M>());
        if interrupted.is_none()
            && let Some((lone, latest)) = self.lone_hart::<M>()
            && latest > end
        {
            return self.lone_turn::<M>(lone, latest);
        }
        let mut stop = None;
        // When the last hart has driven a wire or stored where another waits for a store.
        let mut signal = self.now;
        let count = self.harts.len();
        // The hart that gave its turn away last goes first. A debugger's hart goes on with its own.
        let first = self.first % count.max(1);
        let mut next_first = first;
        while self.system.devices.take_changed().is_some() {}
        if interrupted.is_none() {
            let (now, system) = (self.now, &mut self.system);
            for hart in self.harts.iter_mut().filter(|hart| !hart.is_held()) {
                if hart.wait != Wait::Nothing {
                    wake(hart, system, (now, now), now);
                }
            }
        }
        let begun = interrupted.unwrap_or(0).min(count);
        let mut horizons = std::mem::take(&mut self.horizons);
        if M::TIMED {
            horizons.begin(&self.harts, first, begun);
        }
        for turn in begun..count {
            let index = if first + turn < count {
                first + turn
            } else {
                first + turn - count
            };
            let horizon = if M::TIMED {
                horizons.of(turn)
            } else {
                u64::MAX
            };
            let system = &mut self.system;
            let Some(hart) = self.harts.get_mut(index) else {
                continue;
            };
            if hart.is_held() {
                hart.cycles = hart.cycles.max(end);
                continue;
            }
            hart.catch_up(system);
            if hart.wait != Wait::Nothing {
                continue;
            }
            hart.horizon = horizon;
            let hits = system.memory.hits();
            system.watchful = M::TIMED.then_some(hits);
            let gave_way = run::<M>(hart, system, end);
            system.watchful = None;
            if hart.stops.is_some() && hart.has_stopped() {
                self.interrupted = Some(turn);
                self.horizons = horizons;
                return Some(Stop::Debugger);
            }
            if gave_way {
                hart.reservation = None;
            }
            finish_reserved::<M>(hart, system);
            horizons.note(hart);
            let signalled = system.devices.any_irq_changed() || system.memory.hits() > hits;
            while system.devices.take_changed().is_some() {}
            if M::TIMED && (gave_way || signalled) {
                // The others come as far as this hart, which then goes on first.
                end = hart.cycles.clamp(self.now + 1, end);
                next_first = if gave_way { index } else { next_first };
                // A block that began before the quantum's end may have ended behind it.
                signal = if signalled { hart.cycles } else { signal };
            }
            spread_time(&mut self.harts, system);
            stop = asked_to_stop(&mut self.host, system);
            if stop.is_some() {
                break;
            }
        }
        self.horizons = horizons;
        if stop.is_none() {
            stop = self.wake_harts::<M>(signal, end);
            if stop == Some(Stop::Debugger) {
                return stop;
            }
        }
        self.first = next_first;
        self.finish_quantum(end);
        stop
    }

    /// Wakes the harts that have a reason to at `signal`, or by time before `end`. In the timing mode they run
    /// from then on in the next quantum: what they do now the harts before them could not see.
    fn wake_harts<M: Mode>(&mut self, signal: u64, end: u64) -> Option<Stop> {
        let system = &mut self.system;
        for hart in &mut self.harts {
            if hart.wait == Wait::Nothing || hart.is_held() {
                continue;
            }
            wake(hart, system, (self.now, signal), end);
            if hart.wait == Wait::Nothing && !M::TIMED {
                hart.horizon = u64::MAX;
                hart.catch_up(system);
                run::<M>(hart, system, end);
                if hart.stops.is_some() && hart.has_stopped() {
                    // All turns are over but those of the harts behind this one here.
                    self.interrupted = Some(usize::MAX);
                    return Some(Stop::Debugger);
                }
                finish_reserved::<M>(hart, system);
                let stop = asked_to_stop(&mut self.host, system);
                if stop.is_some() {
                    return stop;
                }
            }
        }
        None
    }

    /// Lets the hart that alone does not wait run until `latest`, or until it has done something that could
    /// wake another: driven a wire, or stored where a hart waits for a store. The quantum ends there.
    fn lone_turn<M: Mode>(&mut self, lone: usize, latest: u64) -> Option<Stop> {
        let hart = self.harts.get_mut(lone)?;
        let system = &mut self.system;
        hart.catch_up(system);
        system.watchful = Some(system.memory.hits());
        hart.horizon = u64::MAX;
        run::<M>(hart, system, latest);
        system.watchful = None;
        finish_reserved::<M>(hart, system);
        let signalled = system.devices.any_irq_changed() || system.memory.hits() > 0;
        let latest = if signalled { u64::MAX } else { latest };
        let end = hart.cycles.min(latest).max(self.now + 1);
        for (index, hart) in self.harts.iter_mut().enumerate() {
            if index != lone {
                let before = hart.cycles;
                hart.cycles = hart.cycles.max(end);
                hart.note_wait(hart.cycles - before);
            }
        }
        let stop = asked_to_stop(&mut self.host, system);
        self.finish_quantum(end);
        stop
    }

    /// Does the work between two quanta.
    fn finish_quantum(&mut self, end: u64) {
        let system = &mut self.system;
        spread_time(&mut self.harts, system);
        while system.devices.take_changed().is_some() {}
        if system.memory.restrictions() > 0 || !system.broadcasts.is_empty() {
            for hart in &mut self.harts {
                hart.catch_up(system);
                hart.restrictions_seen = 0;
                hart.broadcasts_seen = 0;
            }
            system.memory.forget_restrictions();
            system.broadcasts.clear();
        }
        self.now = end;
        if self.sink.is_some() {
            self.hand_over_events();
        }
    }

    /// The length of a turn in cycles.
    const fn turn<M: Mode>(&self) -> u64 {
        if M::TIMED {
            self.config.quantum
        } else {
            self.config.quantum.saturating_mul(self.config.fast_turns)
        }
    }

    /// The hart that runs while all others wait, if there is one, and the time until which nothing but what
    /// it does itself can wake another.
    fn lone_hart<M: Mode>(&self) -> Option<(usize, u64)> {
        let mut lone = None;
        let mut latest = self
            .now
            .saturating_add(self.turn::<M>().saturating_mul(LONE_QUANTA));
        for (index, hart) in self.harts.iter().enumerate() {
            if hart.is_held() || hart.stops.is_some() {
                return None;
            }
            let deadline = match hart.wait {
                Wait::Nothing if lone.is_some() => return None,
                Wait::Nothing => {
                    lone = Some(index);
                    continue;
                }
                Wait::CriticalError => continue,
                Wait::Interrupt => u64::MAX,
                Wait::Store { .. } if self.system.memory.is_hit(hart.id) => return None,
                Wait::Store { deadline, .. } => deadline,
            };
            if self.system.devices.irq_levels(hart.id) != hart.irq_levels {
                return None;
            }
            latest = latest.min(deadline).min(hart.deadlines.timer());
        }
        // Before the next event of a device, which may drive interrupt levels, too.
        let latest = latest.min(self.system.devices.next_event().0);
        (self.harts.len() > 1).then_some((lone?, latest))
    }

    /// While every hart waits, moves time to where something can happen; `false` if nothing can.
    fn skip_idle_time<M: Mode>(&mut self, latest: u64) -> bool {
        let mut event = self.system.devices.next_event().0;
        for hart in &self.harts {
            let own = match hart.wait {
                Wait::Nothing => return true,
                Wait::CriticalError => continue,
                Wait::Interrupt => u64::MAX,
                Wait::Store { .. } if self.system.memory.is_hit(hart.id) => return true,
                Wait::Store { deadline, .. } => deadline,
            };
            if self.system.devices.irq_levels(hart.id) != hart.irq_levels {
                return true;
            }
            event = event.min(own).min(hart.deadlines.timer());
        }
        if event == u64::MAX {
            return false;
        }
        // Only whole quanta are skipped: the harts' turns stay where they are.
        let turn = self.turn::<M>();
        let quanta = event.min(latest).saturating_sub(self.now) / turn;
        let skipped = quanta * turn;
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

/// Makes every hart's timers due where software has set mtime.
fn spread_time(harts: &mut [Hart], system: &mut System) {
    if system.devices.take_time_set() {
        harts.iter_mut().for_each(Hart::expire_timers);
    }
}

/// Tests whether a program or a device has asked for the run's end.
fn asked_to_stop(host: &mut HostInterface, system: &mut System) -> Option<Stop> {
    let code = if system.memory.take_host_written() {
        host.serve(&mut system.memory)
    } else {
        None
    };
    match system.devices.power() {
        Some(Power::Off) => Some(Stop::PowerOff),
        Some(Power::Fail(code)) => Some(Stop::Exit(code.into())),
        Some(Power::Reset) => Some(Stop::Reset),
        None => code.map(Stop::Exit),
    }
}

/// Lets a hart that is between LR and SC at the end of its turn go on to the SC, and ends the reservation:
/// what others store from here on is not compared with it.
///
/// A loop of LR and SC that is constrained has at most 16 instructions ("Eventual Success of
/// Store-Conditional Instructions"). With the turn's end among them it might never succeed.
fn finish_reserved<M: Mode>(hart: &mut Hart, system: &mut System) {
    let retired = hart.retired;
    hart.horizon = u64::MAX;
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
        run::<M>(hart, system, next);
    }
    hart.reservation = None;
}
