//! Data that the hypervisor and the laboratory share.
//!
//! - [`cpio`]: the archive that carries a system image;
//! - [`tree`]: flattened device trees, read without trust;
//! - [`keys`]: the keys of a system file, in one table;
//! - [`system`]: the description of the virtual machines inside a system image;
//! - [`monitor`]: the performance monitor's records and their text form;
//! - [`operator`]: the commands of the operator's prompt;
//! - [`serve`]: the PCI device of a VM that serves disks to others;
//! - [`sbi`]: the SBI extension that guests may call.
//!
//! Everything here reads bytes from outside. Nothing panics on them.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod cpio;
pub mod keys;
pub mod monitor;
pub mod operator;
pub mod sbi;
pub mod serve;
pub mod system;
pub mod tree;
