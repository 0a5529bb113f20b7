//! State that the harts share: memory, devices, and the costs of the profile.

use serde::{Deserialize, Serialize};

use crate::base::Fence;
use crate::base::{AccessFault, Cycles, HartId};
use crate::device::Devices;
use crate::memory::PhysicalMemory;
use crate::timing::Timing;
use crate::trace::locks::Holders;

/// Limits of time that do not depend on the mode.
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
    /// The timing models, in the timing mode.
    pub timing: Option<Box<Timing>>,
    /// Fences for all harts that some may not have carried out yet, and who executed them. Empty between two
    /// quanta.
    pub broadcasts: Vec<(HartId, Fence)>,
    /// Holders of the locks that harts have asked for.
    pub holders: Holders,
    /// If the hart that runs stops where it may have woken another: how many harts' waits had been hit by
    /// stores before.
    pub watchful: Option<usize>,
    /// True if locks of S-mode with V = 0 are told to whoever listens: the words that loops around a PAUSE look at, at each turn of the
    /// loop, as those of loops that exit are; and the words to which AMOADD.W adds a ticket of a ticket lock.
    pub tells_bare_locks: bool,
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
        self.memory.note_transfers(self.timing.is_some());
        let value = self.devices.read(physical, size, now, &mut self.memory);
        self.charge_transfers();
        value
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
        self.memory.note_transfers(self.timing.is_some());
        let memory = &mut self.memory;
        let written = self.devices.write(physical, size, value, now, memory);
        self.charge_transfers();
        written
    }

    /// Lets every device do what has become due.
    pub fn tick(&mut self, now: Cycles) {
        self.memory.note_transfers(self.timing.is_some());
        self.devices.tick(now, &mut self.memory);
        self.charge_transfers();
    }

    /// Follows the lock at `physical` from now on; whether its word comes under observation by that.
    pub(crate) fn watch_lock(&mut self, physical: u64) -> bool {
        let Some(value) = self.memory.ram.read::<u32>(physical) else {
            return false;
        };
        self.holders.watch(physical, value) && self.memory.observe(physical, Holders::WORD_BYTES)
    }

    /// Observes the words of all locks that are followed.
    pub(crate) fn observe_locks(&mut self) {
        for physical in self.holders.words() {
            self.memory.observe(physical, Holders::WORD_BYTES);
        }
    }

    /// The word at `physical` was stored to `by` this vCPU, if by any.
    pub(crate) fn note_lock(&mut self, physical: u64, by: Option<u16>) {
        if let Some(value) = self.memory.ram.read::<u32>(physical) {
            self.holders.store(physical, value, by);
        }
    }

    /// Tells the caches what devices have read and written.
    fn charge_transfers(&mut self) {
        for transfer in self.memory.take_transfers() {
            if let Some(timing) = &mut self.timing {
                timing.device_access(transfer.physical, transfer.length, transfer.store);
            }
        }
    }

    /// The id of a hart by its place in a table.
    #[must_use]
    pub fn hart_id(index: usize) -> HartId {
        HartId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}
