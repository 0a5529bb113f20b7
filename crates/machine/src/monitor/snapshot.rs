//! What has been counted up to a moment, and between two.

use super::HartCounts;
use crate::device::virtio::Statistics;
use crate::hart::Hart;
use crate::machine::Machine;

/// What one hart has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HartSnapshot {
    /// Its cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Everything, up to the moment.
    pub counts: HartCounts,
}

/// What the machine has counted up to a moment, or between two. Taking one changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Machine time in cycles.
    pub cycles: u64,
    /// Hart by hart.
    pub harts: Vec<HartSnapshot>,
    /// Virtio slot by slot, `None` for an empty one.
    pub devices: Vec<Option<(&'static str, Statistics)>>,
}

impl Machine {
    /// What has been counted since reset.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let slots = self.system().devices.slots().iter();
        Snapshot {
            cycles: self.now(),
            harts: self.harts().iter().map(Hart::snapshot).collect(),
            devices: slots
                .map(|slot| {
                    let device = slot.device()?;
                    Some((device.name(), device.model().statistics()))
                })
                .collect(),
        }
    }
}

impl Hart {
    /// What has been counted since reset, with the present mode's and the present stay's share.
    #[must_use]
    pub fn snapshot(&self) -> HartSnapshot {
        let mut counts = self.counts.clone();
        counts.settle(self.mode(), self.cycles, self.retired);
        if self.mode().virtualized {
            counts.leave(self.csrs.vmid());
        }
        HartSnapshot {
            cycles: self.cycles,
            instructions: self.retired,
            counts,
        }
    }
}

impl Snapshot {
    /// What was counted from an earlier moment of the same machine to this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let nothing = HartSnapshot::default();
        let before = |index: usize| earlier.harts.get(index).unwrap_or(&nothing);
        let harts = self.harts.iter().enumerate().map(|(index, hart)| {
            let before = before(index);
            HartSnapshot {
                cycles: hart.cycles.wrapping_sub(before.cycles),
                instructions: hart.instructions.wrapping_sub(before.instructions),
                counts: hart.counts.since(&before.counts),
            }
        });
        let devices = self.devices.iter().enumerate().map(|(index, device)| {
            let (name, now) = (*device)?;
            let before = earlier.devices.get(index).copied().flatten();
            let before = before.map_or_else(Statistics::default, |(_, before)| before);
            Some((name, now.since(&before)))
        });
        Self {
            cycles: self.cycles.wrapping_sub(earlier.cycles),
            harts: harts.collect(),
            devices: devices.collect(),
        }
    }
}
