//! The hardware monitor: what is counted from outside, exactly and at no cost to the guest.

mod counts;
mod event;
mod report;
mod snapshot;

pub use counts::{CODES, Causes, HartCounts, TrapCode, VirtualCounts};
pub use event::{Event, EventCounts};
pub use report::{Counts, DeviceReport, HartReport, Report, Traps, VirtualReport};
pub use snapshot::{HartSnapshot, Snapshot};
