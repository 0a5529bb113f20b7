//! The interrupt levels that end at the harts.

use serde::{Deserialize, Serialize};

/// A hart's number: `mhartid`, and its index in every table of the machine.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct HartId(pub u32);

impl HartId {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Levels that devices drive into one hart. All but `supervisor_software_edge` are levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartIrqLevels {
    /// mip.MTIP, from the ACLINT's MTIMER.
    pub machine_timer: bool,
    /// mip.MSIP, from the ACLINT's MSWI.
    pub machine_software: bool,
    /// mip.MEIP, from the M-level interrupt file or a directly delivering APLIC.
    pub machine_external: bool,
    /// The SEIP input of the hart, from the S-level interrupt file or a directly delivering APLIC.
    pub supervisor_external: bool,
    /// An SSWI device wrote SETSSIP: the hart sets mip.SSIP and clears this flag.
    pub supervisor_software_edge: bool,
    /// `hgeip`: bit n is guest interrupt file n (1..=63).
    pub guest_external: u64,
}

/// The interrupt levels of every hart, with a note of which harts saw a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqLevels {
    harts: Vec<HartIrqLevels>,
    changed: Vec<HartId>,
}

impl IrqLevels {
    /// Wires of `harts` harts, all low.
    #[must_use]
    pub fn new(harts: u32) -> Self {
        Self {
            harts: vec![HartIrqLevels::default(); harts as usize],
            changed: Vec::new(),
        }
    }

    /// The interrupt levels of one hart; all low for a hart that does not exist.
    #[must_use]
    pub fn hart(&self, hart: HartId) -> HartIrqLevels {
        self.harts.get(hart.index()).copied().unwrap_or_default()
    }

    /// How many harts there are.
    #[must_use]
    pub fn harts(&self) -> usize {
        self.harts.len()
    }

    /// Changes a hart's interrupt levels by `change` and notes the hart if anything is different after it.
    pub fn update(&mut self, hart: HartId, change: impl FnOnce(&mut HartIrqLevels)) {
        let Some(irq_levels) = self.harts.get_mut(hart.index()) else {
            return;
        };
        let before = *irq_levels;
        change(irq_levels);
        if *irq_levels != before && !self.changed.contains(&hart) {
            self.changed.push(hart);
        }
    }

    /// Notes a hart whose time has changed, as if its levels had.
    pub fn note(&mut self, hart: HartId) {
        if hart.index() < self.harts.len() && !self.changed.contains(&hart) {
            self.changed.push(hart);
        }
    }

    /// Tests whether any hart's interrupt levels changed since [`IrqLevels::take_changed`] last emptied the note.
    #[must_use]
    pub fn any_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes one hart off the note of changes, oldest first.
    pub fn take_changed(&mut self) -> Option<HartId> {
        if self.changed.is_empty() {
            None
        } else {
            Some(self.changed.remove(0))
        }
    }
}
