//! Spin waits of guests: which word a spinning guest waits for, and when to poll it.
//!
//! A guest that spins executes WRS.NTO or PAUSE in a loop. The loop's code and the guest's registers tell which word of memory is waited for,
//! and which value of it ends the wait. This crate decodes the loop ([`WrsLoop`], [`PauseLoop`], [`Iteration`], [`NextWait`]), keeps what was
//! found ([`SpinLoop`], [`WatchedWord`], [`Conditions`], [`LockPosition`]), and decides when a hart polls ([`PollTimer`], [`PollHistory`]).
//!
//! Everything found is a hint: WRS.NTO may end for any reason (Zawrs) and PAUSE takes any time, so a wrong guess costs time, never
//! correctness.
//!
//! The crate reaches a guest by two traits alone ([`Guest`], [`ReadWord`]) and knows of no CSR, lock or scheduler. Times are in ticks of the
//! board's timebase.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

#[cfg(test)]
extern crate std;

mod condition;
mod instruction;
mod iteration;
mod next_wait;
mod parcel;
mod pause;
mod pause_window;
mod poll_history;
mod poll_timer;
mod port;
mod register;
mod spin_history;
mod spin_loop;
mod ticket;
mod word;
mod wrs;

pub use condition::{Condition, Conditions, MAX_CONDITIONS};
pub use iteration::Iteration;
pub use next_wait::NextWait;
pub use pause::PauseLoop;
pub use pause_window::{PauseTerms, PauseWindow};
pub use poll_history::PollHistory;
pub use poll_timer::{PollReason, PollTimer};
pub use port::{Guest, ReadWord};
pub use register::{Register, Width, WordAddress};
pub use spin_history::{EndedSpin, SpinHistory};
pub use spin_loop::{CodeAddress, KnownLoop, Operands, SpinLoop};
pub use ticket::ticket_register;
pub use word::{LastPosition, LockPosition, SpinStatus, WatchedWord};
pub use wrs::WrsLoop;
