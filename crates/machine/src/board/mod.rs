//! The board: where things are, how the device tree says so, and what is in RAM at reset.

mod bridge;
mod config;
mod elf;
mod load;
pub mod map;
mod pmu;
#[cfg(test)]
mod tests;
mod tree;

pub use crate::base::PmpEntries;
pub use crate::extension::{Isa, VmidBits};
pub use config::{BoardConfig, BoardError, IommuConfig, PciConfig};
pub use elf::{Elf, is_elf, load_elf};
pub use load::{Boot, Images, load, load_bare};
pub use tree::device_tree;
