//! Switches between VMs.

use super::{MAX_SLOTS, Slot};

/// A switch, with ports of VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchDescription {
    /// The slot of the card that joins it to the network outside, if one does.
    pub uplink: Option<Slot>,
}

/// The cell of a switch without an uplink.
const NO_SLOT: u32 = u32::MAX;

impl SwitchDescription {
    /// The cell that stands for it.
    pub fn cell(&self) -> u32 {
        self.uplink.map_or(NO_SLOT, |slot| slot.0.into())
    }

    /// Switch of a cell, if the cell is sound.
    pub(super) fn from_cell(cell: u32) -> Option<Self> {
        let slot = u8::try_from(cell)
            .ok()
            .filter(|slot| usize::from(*slot) < MAX_SLOTS);
        match cell {
            NO_SLOT => Some(Self { uplink: None }),
            _ => slot.map(|slot| Self {
                uplink: Some(Slot(slot)),
            }),
        }
    }
}
