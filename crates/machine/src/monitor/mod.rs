//! The hardware monitor: what is counted from outside, exactly and at no cost to the guest.

mod counts;

pub use counts::HartCounts;
