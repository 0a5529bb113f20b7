//! Guest memory: addresses, frames, G-stage tables, placement, and cached translations.

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
pub mod zeroed;
