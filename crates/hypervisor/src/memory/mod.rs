//! Guest memory: addresses, frames, G-stage tables, and where a guest's memory lies.

pub mod address;
pub mod frames;
pub mod gstage;
pub mod placement;
pub mod tables;
pub mod walk;
