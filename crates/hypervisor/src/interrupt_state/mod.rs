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
mod kept;
#[cfg(test)]
mod model;
mod moves;
pub mod port;
mod table;

pub use forward::{attend, deliver, serve, serve_now_and_then, synchronised};
pub use kept::{Backing, Generation, Interrupts, Life, Route};
pub use moves::{Departure, attach, detach, reset};
pub use port::Port;
pub use table::{GuestFile, HartFiles, Owner};
