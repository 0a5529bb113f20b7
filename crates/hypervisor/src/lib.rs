//! The hypervisor's portable parts.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod address;
pub mod aplic;
pub mod change;
pub mod counters;
pub mod decode;
pub mod frames;
pub mod gstage;
pub mod guest_tree;
pub mod image;
pub mod instruction;
pub mod interrupt_state;
pub mod parameters;
pub mod placement;
pub mod softfile;
pub mod terminal;
pub mod uart;
pub mod walk;
