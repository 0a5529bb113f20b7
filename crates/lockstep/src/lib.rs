//! How we know that the machine is right: other people's suites, and random programs beside
//! other implementations.
//!
//! [`suite`] runs whatever programs a folder holds.

pub mod suite;
