//! The exerciser's portable parts: what it can work out without hardware, tested on the host.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arguments;
pub mod csr;
pub mod distribution;
pub mod event;
pub mod fuzz;
pub mod instruction;
pub mod pattern;
pub mod random;
pub mod sbi;
pub mod workload;
