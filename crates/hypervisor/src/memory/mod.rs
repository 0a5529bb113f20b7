//! Guest memory: addresses, frames, G-stage tables, where a guest's memory lies, and what of it is cached.

pub mod address;
pub mod frames;
pub mod gstage;
pub mod guest;
pub mod owned;
pub mod physical;
pub mod placement;
pub mod reclaim;
pub mod shadow;
mod shifted;
pub mod tables;
pub mod touched;
pub mod translations;
pub mod walk;
