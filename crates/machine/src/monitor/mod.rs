//! The hardware monitor: what is counted from outside, exactly and at no cost to the guest.

mod report;
mod snapshot;

pub use crate::count::{CODES, Causes, Event, EventCounts, HartCounts, TrapCode, VirtualCounts};
pub use report::{
    Counts, DeviceReport, HartReport, Name, Report, StretchReport, Traps, VirtualReport,
};
pub use snapshot::{HartSnapshot, Snapshot};
