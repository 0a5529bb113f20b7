//! A deterministic, cycle-accounting SMP RISC-V computer.
//!
//! [`Machine`] is the whole computer. Inside it, [`hart`] and [`csr`] are what the privileged
//! specification describes, [`instruction`], [`code`] and [`execute`] turn encodings into effects,
//! [`translation`] and [`memory`] are where accesses go, [`device`] and [`board`] what they find
//! there besides RAM, [`extension`] what the papers propose as hardware, and [`monitor`] is what can be counted from outside.

pub mod base;
pub mod board;
pub mod checkpoint;
pub mod code;
pub mod count;
pub mod csr;
pub mod device;
pub mod execute;
pub mod extension;
pub mod float;
pub mod front;
pub mod gdb;
pub mod hart;
pub mod instruction;
mod machine;
pub mod memory;
pub mod monitor;
pub mod native;
pub mod profile;
pub mod ram;
mod system;
pub mod timing;
pub mod trace;
pub mod translation;
pub mod vector;
pub mod zicsr;

pub use machine::{Config, Limit, Machine, MachineError, Stop, iommu};
pub use system::{Limits, System};
