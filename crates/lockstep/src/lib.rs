//! How we know that the machine is right: other people's suites, and random programs beside
//! other implementations.
//!
//! [`suite`] runs whatever programs a folder holds. [`lockstep`] makes random [`program`]s, runs
//! them here and on an [`oracle`], and [`compare`]s what they leave behind.

pub mod assembler;
pub mod compare;
pub mod csr;
pub mod departures;
pub mod elf;
pub mod harness;
pub mod iommu;
pub mod layout;
pub mod lockstep;
pub mod oracle;
pub mod program;
pub mod random;
pub mod suite;
pub mod sweep;
pub mod team;
