//! Waiting: WFI, WRS.NTO and WRS.STO.

use serde::{Deserialize, Serialize};

/// What a hart waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// It runs.
    #[default]
    Nothing,
    /// WFI: for an interrupt that is pending and enabled, whether or not it can be taken.
    Interrupt,
    /// WRS: for that or a store to the reservation set.
    Store {
        /// When the wait ends at the latest, in cycles.
        deadline: u64,
        /// What the end of the time leads to.
        expiry: Expiry,
    },
}

impl Wait {
    /// What people call the hart's state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "running",
            Self::Interrupt => "waiting in WFI",
            Self::Store { .. } => "waiting in WRS",
        }
    }

    /// Whether the instruction that waits, which has been counted as retired, may trap in the end and then has not.
    #[must_use]
    pub const fn may_trap(self) -> bool {
        matches!(
            self,
            Self::Store {
                expiry: Expiry::Illegal | Expiry::Virtual,
                ..
            }
        )
    }
}

/// What happens when a WRS has waited as long as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiry {
    /// The instruction completes.
    Complete,
    /// It raises an illegal-instruction exception: mstatus.TW.
    Illegal,
    /// It raises a virtual-instruction exception: hstatus.VTW.
    Virtual,
}
