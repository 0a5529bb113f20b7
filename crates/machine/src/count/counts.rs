//! Counts of one hart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Event, EventCounts};
use crate::base::Mode;

/// Exception and interrupt codes that are told apart.
pub const CODES: usize = 32;

/// Traps by code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// By exception code.
    pub exceptions: [u64; CODES],
    /// By interrupt number.
    pub interrupts: [u64; CODES],
}

/// A trap, to those who count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrapCode {
    /// A synchronous exception.
    Exception(u64),
    /// An interrupt.
    Interrupt(u64),
}

impl Causes {
    fn count(&mut self, code: TrapCode) {
        let (table, number) = match code {
            TrapCode::Exception(number) => (&mut self.exceptions, number),
            TrapCode::Interrupt(number) => (&mut self.interrupts, number),
        };
        if let Some(slot) = table.get_mut(number as usize) {
            *slot = slot.wrapping_add(1);
        }
    }

    /// Adds all of another's counts.
    pub fn add_all(&mut self, other: &Self) {
        let own = self.exceptions.iter_mut().chain(&mut self.interrupts);
        for (count, more) in own.zip(other.exceptions.iter().chain(&other.interrupts)) {
            *count = count.wrapping_add(*more);
        }
    }

    /// Counts since an earlier sample.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        let own = difference
            .exceptions
            .iter_mut()
            .chain(&mut difference.interrupts);
        for (count, before) in own.zip(earlier.exceptions.iter().chain(&earlier.interrupts)) {
            *count = count.wrapping_sub(*before);
        }
        difference
    }
}

/// Counts of the time in which a virtual machine had the hart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualCounts {
    /// In VS-mode.
    pub supervisor: EventCounts,
    /// In VU-mode.
    pub user: EventCounts,
    /// Traps that ended its stays, by code.
    pub exits: Causes,
}

impl VirtualCounts {
    /// Adds all of another's counts.
    pub fn add_all(&mut self, other: &Self) {
        self.supervisor.add_all(&other.supervisor);
        self.user.add_all(&other.user);
        self.exits.add_all(&other.exits);
    }

    /// Counts since an earlier sample.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            supervisor: self.supervisor.since(&earlier.supervisor),
            user: self.user.since(&earlier.user),
            exits: self.exits.since(&earlier.exits),
        }
    }
}

/// Places of the two virtual modes in [`HartCounts::modes`].
const VIRTUAL_USER: usize = 3;
const VIRTUAL_SUPERVISOR: usize = 4;

/// The counts of one hart since reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartCounts {
    /// By mode, indexed by [`Mode::index`]: cycles and instructions up to the last change of mode,
    /// everything else up to now.
    pub modes: [EventCounts; Mode::COUNT],
    /// By VMID, up to the last exit.
    pub virtual_machines: BTreeMap<u16, VirtualCounts>,
    /// Traps by the mode they came from.
    pub traps: [Causes; Mode::COUNT],
    /// Traps from V = 1 to HS-mode.
    pub exits: Causes,
    /// Traps from V = 1 to M-mode.
    pub exits_to_machine: Causes,
    /// Loads, stores and fetches whose translation the host had to look up: a figure of the
    /// simulator, not of the computer.
    pub host_translations: u64,
    last_cycles: u64,
    last_instructions: u64,
    /// VS- and VU-mode's counts at the last entry.
    entered: (EventCounts, EventCounts),
}

impl HartCounts {
    /// The counts of a mode.
    #[inline]
    pub fn of(&mut self, mode: Mode) -> &mut EventCounts {
        // There are as many as modes.
        &mut self.modes[mode.index()]
    }

    /// Gives the time and the instructions since the last call to a mode.
    pub fn settle(&mut self, mode: Mode, cycles: u64, instructions: u64) {
        let time = cycles.wrapping_sub(self.last_cycles);
        let retired = instructions.wrapping_sub(self.last_instructions);
        (self.last_cycles, self.last_instructions) = (cycles, instructions);
        let counts = self.of(mode);
        counts.add(Event::Cycles, time);
        counts.add(Event::Instructions, retired);
    }

    /// Cycles and instructions since the last call to [`Self::settle`].
    #[must_use]
    pub const fn unsettled(&self, cycles: u64, instructions: u64) -> (u64, u64) {
        (
            cycles.wrapping_sub(self.last_cycles),
            instructions.wrapping_sub(self.last_instructions),
        )
    }

    /// The hart changes from V = 0 to V = 1.
    pub const fn enter(&mut self) {
        self.entered = (self.modes[VIRTUAL_SUPERVISOR], self.modes[VIRTUAL_USER]);
    }

    /// Counts since the last entry.
    fn stay(&self) -> VirtualCounts {
        VirtualCounts {
            supervisor: self.modes[VIRTUAL_SUPERVISOR].since(&self.entered.0),
            user: self.modes[VIRTUAL_USER].since(&self.entered.1),
            exits: Causes::default(),
        }
    }

    /// The hart changes from V = 1 to V = 0.
    pub fn leave(&mut self, vmid: u16) {
        let stay = self.stay();
        self.virtual_machines
            .entry(vmid)
            .or_default()
            .add_all(&stay);
        self.enter();
    }

    /// Counts a trap from one mode to another.
    pub fn trap(&mut self, from: Mode, to: Mode, vmid: u16, code: TrapCode) {
        self.traps[from.index()].count(code);
        let counts = self.of(from);
        counts.add(
            match code {
                TrapCode::Exception(_) => Event::Exceptions,
                TrapCode::Interrupt(_) => Event::Interrupts,
            },
            1,
        );
        if from.virtualized && !to.virtualized {
            counts.add(Event::Exits, 1);
            if to == Mode::MACHINE {
                self.exits_to_machine.count(code);
            } else {
                self.exits.count(code);
            }
            let machine = self.virtual_machines.entry(vmid).or_default();
            machine.exits.count(code);
        }
    }

    /// All modes together.
    #[must_use]
    pub fn total(&self) -> EventCounts {
        let mut total = EventCounts::default();
        for counts in &self.modes {
            total.add_all(counts);
        }
        total
    }

    /// Counts since an earlier sample.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (counts, before) in difference.modes.iter_mut().zip(&earlier.modes) {
            *counts = counts.since(before);
        }
        for (vmid, before) in &earlier.virtual_machines {
            if let Some(counts) = difference.virtual_machines.get_mut(vmid) {
                *counts = counts.since(before);
            }
        }
        for (causes, before) in difference.traps.iter_mut().zip(&earlier.traps) {
            *causes = causes.since(before);
        }
        difference.exits = self.exits.since(&earlier.exits);
        difference.exits_to_machine = self.exits_to_machine.since(&earlier.exits_to_machine);
        difference.host_translations = self
            .host_translations
            .wrapping_sub(earlier.host_translations);
        difference
    }
}
