#![doc = include_str!("INVARIANTS.md")]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod file;
mod forward;
mod guest_file;
mod hear;
mod kept;
#[cfg(test)]
mod model;
mod moves;
pub mod port;
pub mod softfile;
mod stale_files;
mod table;

pub use forward::{attend, deliver, look, serve, synchronised};
pub use guest_file::GuestFile;
pub use hear::{begin_to_hear, end_hearing};
pub use kept::{Backing, Generation, Interrupts, ResetEpoch, Route};
pub use moves::{Departure, attach, detach, open_hart, reset, send_sources_again};
pub use port::{Port, Sign};
pub use stale_files::StaleFiles;
pub use table::{HartFiles, Owner};
