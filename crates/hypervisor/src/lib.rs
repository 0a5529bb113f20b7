//! Partita's hypervisor: booted by OpenSBI in HS-mode, it runs the virtual machines of one system image.
//!
//! Everything is here; the program adds the way in and the way out. All of it compiles on other computers too, where it
//! is tested: what a hart alone can do stands in [`hart`].
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

mod boot;
mod console;
mod devices;
mod hart;
pub mod heap;
mod interrupts;
mod lock;
pub mod memory;
mod operator;
mod run;
mod sort;
mod system;
mod vm;

// What the program needs. Everything else stays inside, so that the compiler knows all callers.
pub use boot::efi::start as start_from_efi;
pub use boot::{defect, first_hart, other_hart, unexpected_trap};
pub use system::harts::Hart;
