//! Counts of events while they happen: events by hart, mode and virtual machine.

mod counts;
mod event;

pub use counts::{CODES, Causes, HartCounts, TrapCode, VirtualCounts};
pub use event::{Event, EventCounts};
