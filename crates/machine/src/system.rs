//! What the harts share: memory, devices, and the costs of the profile.

use serde::{Deserialize, Serialize};

use crate::device::{AccessFault, Cycles, Devices, HartId};
use crate::memory::PhysicalMemory;
use crate::timing::Timing;

/// Limits of time that do not depend on the gear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Cycles that WRS.NTO waits before it traps where hstatus.VTW or mstatus.TW asks for it.
    pub wrs_nto: u64,
    /// Cycles that WRS.STO waits.
    pub wrs_sto: u64,
}

/// Everything in the machine that is not a hart.
#[derive(Debug)]
pub struct System {
    /// RAM and what depends on it.
    pub memory: PhysicalMemory,
    /// Devices.
    pub devices: Devices,
    /// Limits of time.
    pub limits: Limits,
    /// The timing models, in the measured gear.
    pub timing: Option<Box<Timing>>,
}

impl System {
    /// Guest interrupt files a hart: GEILEN.
    #[must_use]
    pub const fn guest_files(&self) -> u8 {
        self.devices.guest_files()
    }

    /// The bits of hgeie and hgeip that exist.
    #[must_use]
    pub const fn guest_file_mask(&self) -> u64 {
        match self.guest_files() {
            0 => 0,
            63.. => !1,
            files => ((1 << files) - 1) << 1,
        }
    }

    /// Reads outside RAM.
    ///
    /// # Errors
    /// [`AccessFault`] when nothing answers.
    pub fn read_device(
        &mut self,
        physical: u64,
        size: u8,
        now: Cycles,
    ) -> Result<u64, AccessFault> {
        self.devices.read(physical, size, now, &mut self.memory)
    }

    /// Writes outside RAM.
    ///
    /// # Errors
    /// [`AccessFault`] when nothing answers.
    pub fn write_device(
        &mut self,
        physical: u64,
        size: u8,
        value: u64,
        now: Cycles,
    ) -> Result<(), AccessFault> {
        self.devices
            .write(physical, size, value, now, &mut self.memory)
    }

    /// The id of a hart by its place in a table.
    #[must_use]
    pub fn hart_id(index: usize) -> HartId {
        HartId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}
