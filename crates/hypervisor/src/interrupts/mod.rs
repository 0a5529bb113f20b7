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
#[cfg(test)]
mod model;
mod moves;
pub mod port;
pub mod softfile;
mod stale_files;
mod table;
mod vcpu_interrupts;
mod watch;

pub use forward::{deliver, handle_guest_file_interrupts, poll_files, serve, synchronised};
pub use guest_file::GuestFile;
pub use moves::{Departure, attach, detach, open_hart, reset, send_sources_again};
pub use port::{Port, Sign};
pub use stale_files::StaleFiles;
pub use table::{HartFiles, Owner};
pub use vcpu_interrupts::{Backing, Generation, Interrupts, ResetEpoch, Route};
pub use watch::{unwatch_files, watch_waiter};
