//! Waiting: WFI, WRS.NTO and WRS.STO; and the end of a hart that takes a trap where it cannot.

use serde::{Deserialize, Serialize};

/// Cause of a hart's wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// It runs.
    #[default]
    Nothing,
    /// WFI: for an interrupt that is pending and enabled, whether or not it can be taken.
    Interrupt,
    /// A double trap of M-mode: for ever.
    CriticalError,
    /// WRS: for that or a store to the reservation set.
    Store {
        /// When the wait ends at the latest, in cycles.
        deadline: u64,
        /// Effect of the end of the time.
        expiry: Expiry,
    },
}

impl Wait {
    /// Name of the hart's state for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "running",
            Self::Interrupt => "waiting in WFI",
            Self::CriticalError => "stopped by a critical error",
            Self::Store { .. } => "waiting in WRS",
        }
    }

    /// Tests whether the instruction that waits, which has been counted as retired, may trap in the end and then has not.
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

/// Effect of the longest wait of a WRS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiry {
    /// The instruction completes.
    Complete,
    /// It raises an illegal-instruction exception: mstatus.TW.
    Illegal,
    /// It raises a virtual-instruction exception: hstatus.VTW.
    Virtual,
}
