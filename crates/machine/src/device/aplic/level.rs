//! Levels of interrupt domains (§4.2).

use serde::{Deserialize, Serialize};

/// One of the two interrupt domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DomainLevel {
    /// The root domain.
    Machine,
    /// The root domain's child.
    Supervisor,
}
