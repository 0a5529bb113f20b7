//! A deterministic farm of hostile systems: each seed is a system of VMs whose guests and operator do what is at the edge of validity, and
//! each run on the machine is judged from outside.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bytes;
pub mod case;
pub mod code;
pub mod corpus;
pub mod disk;
pub mod draw;
pub mod farm;
pub mod finding;
pub mod judge;
pub mod mutant;
pub mod observe;
pub mod shrink;
