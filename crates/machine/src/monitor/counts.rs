//! What one hart counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hart::Mode;

/// Exception and interrupt codes that are told apart.
const CODES: usize = 32;

/// Cycles and instructions spent in one mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
}

/// The counts of one hart since reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartCounts {
    /// By mode, indexed by [`Mode::index`], up to the last change of mode.
    pub modes: [Share; Mode::COUNT],
    /// By VMID, the time with V = 1.
    pub virtual_machines: BTreeMap<u16, Share>,
    /// Synchronous exceptions by the mode they came from and by code.
    pub exceptions: [[u64; CODES]; Mode::COUNT],
    /// Interrupts taken by the mode they came from and by code.
    pub interrupts: [[u64; CODES]; Mode::COUNT],
    /// Loads that were translated by a walk of the page tables.
    pub loads_translated: u64,
    /// Stores that were translated by a walk of the page tables.
    pub stores_translated: u64,
    /// Fetches that were translated by a walk of the page tables.
    pub fetches_translated: u64,
    /// Loads and stores answered by devices.
    pub device_accesses: u64,
    /// Cycles spent waiting in WFI and WRS.
    pub waited: u64,
    last_cycles: u64,
    last_instructions: u64,
}

impl HartCounts {
    /// Notes that the hart leaves a mode.
    pub fn leave_mode(&mut self, mode: Mode, hgatp: u64, cycles: u64, instructions: u64) {
        let share = Share {
            cycles: cycles.wrapping_sub(self.last_cycles),
            instructions: instructions.wrapping_sub(self.last_instructions),
        };
        (self.last_cycles, self.last_instructions) = (cycles, instructions);
        let add = |total: &mut Share| {
            total.cycles += share.cycles;
            total.instructions += share.instructions;
        };
        if let Some(total) = self.modes.get_mut(mode.index()) {
            add(total);
        }
        if mode.virtualized {
            add(self
                .virtual_machines
                .entry((hgatp >> 44 & 0x3fff) as u16)
                .or_default());
        }
    }

    /// Notes an exception taken from a mode.
    pub fn exception(&mut self, from: Mode, code: u64) {
        count(&mut self.exceptions, from, code);
    }

    /// Notes an interrupt taken from a mode.
    pub fn interrupt(&mut self, from: Mode, code: u64) {
        count(&mut self.interrupts, from, code);
    }

    /// The count that a hardware performance counter with this event shows: docs/machine.md lists
    /// them.
    #[must_use]
    pub fn event(&self, event: u64) -> u64 {
        let traps = |table: &[[u64; CODES]; Mode::COUNT]| table.iter().flatten().sum();
        match event {
            1 => traps(&self.exceptions),
            2 => traps(&self.interrupts),
            3 => self.loads_translated,
            4 => self.stores_translated,
            5 => self.fetches_translated,
            6 => self.device_accesses,
            7 => self.waited,
            _ => 0,
        }
    }
}

fn count(table: &mut [[u64; CODES]; Mode::COUNT], from: Mode, code: u64) {
    if let Some(slot) = table
        .get_mut(from.index())
        .and_then(|row| row.get_mut(code as usize))
    {
        *slot += 1;
    }
}
