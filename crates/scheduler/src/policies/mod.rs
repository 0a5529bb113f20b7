//! Policies: what happens at a spin and at a wait, and the queues and accounts that the papers' policies use.
//!
//! A spin policy is one file and one row in [`spin`]; a wait policy is one row in [`wait`]. Nothing here knows the scheduler's tables.

pub(crate) mod gang;
pub mod queues;
pub(crate) mod service;
pub mod spin;
pub(crate) mod spin_waits;
pub(crate) mod virtual_time;
pub(crate) mod vm_boost;
pub mod wait;
