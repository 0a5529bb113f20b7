//! Control and status registers of HS-mode: access to them, and the numbers and fields of [`super::fields`].

pub use super::fields::{environment, exception, hstatus, hvictl, interrupt, number, status};
pub use super::isa::csr::{clear, read, set, swap, write};
