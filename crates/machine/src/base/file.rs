//! The harts' interrupt files.

use serde::{Deserialize, Serialize};

/// One of a hart's interrupt files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InterruptFile {
    /// The machine-level file: miselect, mireg, mtopei.
    Machine,
    /// The supervisor-level file: siselect, sireg, stopei.
    Supervisor,
    /// Guest interrupt file 1..=63: vsiselect, vsireg, vstopei with that hstatus.VGEIN.
    Guest(u8),
}

/// The file or the register asked for does not exist. Which exception that is depends on the
/// privilege mode and is the hart's to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such interrupt file or register")]
pub struct NoSuchRegister;
