//! An IOMMU (RISC-V IOMMU Architecture Specification 1.0): translates the addresses of accesses that devices make, and refuses those that
//! their contexts do not allow.
//!
//! Cached parts of device contexts, process contexts and page tables stay until software invalidates them, or until their place is
//! needed: software that leaves an invalidation out is found out. Neither ATS nor page requests, performance counters, big-endian or
//! 32-bit tables are there.

mod access;
mod cache;
mod commands;
mod context;
mod directory;
mod entry;
mod faults;
mod interface;
mod messages;
mod process;
mod registers;
mod stage;
mod state;
#[cfg(test)]
mod tests;
mod translate;

pub use access::{Access, Place, Process, Request, Translation};
pub use registers::VECTORS;
pub use state::{Iommu, IommuCosts, IommuStatistics, capabilities};
