//! The monitor's figures as one document.

use serde::Serialize;

use super::HartCounts;
use crate::device::virtio::Slot;
use crate::hart::Hart;
use crate::machine::Machine;
use crate::timing::TimingCounts;

/// What one hart has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HartReport {
    /// mhartid.
    pub hart: u32,
    /// Cycles since reset.
    pub cycles: u64,
    /// Instructions retired since reset.
    pub instructions: u64,
    /// Everything else that is counted in either gear.
    pub counts: HartCounts,
    /// What the timing models counted, in the measured gear.
    pub timing: Option<TimingCounts>,
}

/// What the device in a virtio slot has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceReport {
    /// The slot.
    pub slot: usize,
    /// What kind of device it is.
    pub kind: String,
    /// Requests taken.
    pub requests: u64,
    /// Requests that failed, on purpose or not.
    pub errors: u64,
    /// Bytes of data moved.
    pub bytes: u64,
    /// Service time in cycles, summed over requests.
    pub busy: u64,
    /// Cycles that requests waited before their service began, summed.
    pub waited: u64,
}

/// What the machine has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Machine time in cycles.
    pub cycles: u64,
    /// Cycles a second.
    pub hertz: u64,
    /// A hash of all of memory.
    pub memory_hash: String,
    /// Hart by hart.
    pub harts: Vec<HartReport>,
    /// Device by device.
    pub devices: Vec<DeviceReport>,
}

impl Machine {
    /// The monitor's figures.
    #[must_use]
    pub fn report(&self) -> Report {
        let timing = self.system().timing.as_deref();
        let of_hart = |hart: &Hart| HartReport {
            hart: hart.id.0,
            cycles: hart.cycles,
            instructions: hart.retired,
            counts: hart.counts_now(),
            timing: timing.map(|timing| timing.counts(hart.id)),
        };
        Report {
            cycles: self.now(),
            hertz: self.config().board.clock.cycles_per_second(),
            memory_hash: format!("{:016x}", self.memory_hash()),
            harts: self.harts().iter().map(of_hart).collect(),
            devices: self.device_reports(),
        }
    }

    /// What the devices have done.
    fn device_reports(&self) -> Vec<DeviceReport> {
        let slots = self.system().devices.slots().iter().enumerate();
        let of_slot = |(number, slot): (usize, &Slot)| {
            let device = slot.device()?;
            let did = device.model().statistics();
            Some(DeviceReport {
                slot: number,
                kind: device.to_string(),
                requests: did.requests,
                errors: did.errors,
                bytes: did.bytes,
                busy: did.busy.0,
                waited: did.waited.0,
            })
        };
        slots.filter_map(of_slot).collect()
    }

    /// A hash of all of RAM (XXH3, 64 bits), which depends on nothing else.
    #[must_use]
    pub fn memory_hash(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(self.system().memory.ram.bytes())
    }
}

impl Hart {
    /// The counts with the present mode's share up to now.
    #[must_use]
    pub fn counts_now(&self) -> HartCounts {
        let mut counts = self.counts.clone();
        counts.leave_mode(self.mode(), self.csrs.hgatp, self.cycles, self.retired);
        counts
    }
}
