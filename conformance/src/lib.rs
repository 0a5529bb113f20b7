//! Base of the conformance programs: start-up, traps, privilege modes, CSRs, a report.
//!
//! A program is a list of [`suite::Test`]s. It runs them on hart 0 in M-mode, prints a line for
//! each on the UART, and ends the machine by the test finisher: with success if all passed.

#![no_std]

pub mod csr;
pub mod device;
pub mod extension;
pub mod harts;
pub mod mode;
pub mod suite;
pub mod trap;

mod start;
