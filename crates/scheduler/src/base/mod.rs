//! Identifiers, time, and choices among equals.

pub(crate) mod choice;
pub mod id;
pub mod ticks;
