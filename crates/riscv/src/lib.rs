//! Numbers of the specifications: registers, fields, causes, identifiers and offsets, each once.
//!
//! A module follows one specification and names the section that each group comes from. There is no behaviour here: a
//! constant says what a number means, and the crates that use it say what is done with it.

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod aplic;
pub mod csr;
pub mod exception;
pub mod finisher;
pub mod goldfish_rtc;
pub mod imsic;
pub mod instruction;
pub mod interrupt;
pub mod iommu;
pub mod page_table;
pub mod pci;
pub mod plic;
pub mod sbi;
pub mod uart;
pub mod virtio;
