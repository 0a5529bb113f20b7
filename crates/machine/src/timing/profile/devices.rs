//! What a profile says of devices: how long they take, and what goes wrong on purpose.

use serde::{Deserialize, Serialize};

use crate::device::virtio::{Faults, Service};

/// Disks: how long they take and how they fail. What is left out takes no time and does not fail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskProfile {
    /// Service times.
    pub service: Service,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// Network cards and the switch between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkProfile {
    /// How long a frame takes from one card to the other, beside its line's service time.
    pub latency_nanoseconds: u64,
    /// Service times of a card's line.
    pub service: Service,
    /// What goes wrong on purpose.
    pub faults: Faults,
}
