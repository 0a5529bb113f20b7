//! The hardware monitor: what is counted from outside, exactly and at no cost to the guest.

mod counts;
mod report;

pub use counts::HartCounts;
pub use report::{HartReport, Report};
