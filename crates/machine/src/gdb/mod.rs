//! A debugger from outside: the remote serial protocol of gdb over TCP.
//!
//! Every hart is a thread. Registers (integer, floating-point, pc and the CSRs that
//! `target.xml` lists, these to be read only), memory with the eyes of the hart's present mode,
//! breakpoints and single steps. Without breakpoints and steps a run is the run without a
//! debugger; with them harts take turns at instruction ends instead of block ends, so that cycle
//! counts can differ from then on.

mod memory;
mod register;
mod serve;
mod target;
#[cfg(test)]
mod tests;

use crate::hart::{Reached, Stops};
pub use serve::{GdbError, serve};
