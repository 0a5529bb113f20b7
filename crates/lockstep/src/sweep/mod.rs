//! Every instruction encoding and every CSR number, in all five modes, and what CSRs keep.
//!
//! A [`probe`] executes one instruction after the other and notes which exception each raises. What is expected comes from the
//! specifications' tables, written down by hand as rules in [`encoding`], [`compressed`] and [`csr`], and from another
//! implementation where one is installed.

pub mod bus;
pub mod compressed;
pub mod csr;
pub mod encoding;
pub mod probe;
pub mod value;
pub mod vector;

pub use probe::{Mode, Outcome, image, outcomes, vector_image};
