//! A board as its device tree describes it: harts, memory, interrupt controllers, the console and the devices.
//!
//! [`Tree`] checks a flattened device tree, [`Survey`] collects the facts, and [`Board`] has what the hypervisor needs of them, or says all that is
//! missing ([`Lack`]). The hypervisor and the command read boards by this crate alone, so `partita board --describe` says what the hypervisor
//! will do.
//!
//! Sources: Devicetree Specification v0.4; the bindings of Linux for `riscv,imsics`, `riscv,aplic`, PLICs, `riscv,cpus` and UARTs.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod cells;
mod console;
mod devices;
mod given;
mod guest_map;
pub mod guest_tree;
mod hart;
mod interrupt_parent;
mod interrupts;
pub mod isa;
mod lack;
mod memory;
mod pci;
mod range;
mod structure;
mod survey;
mod tree;
mod writer;

pub use console::{Uart, UartKind};
pub use devices::{BoardDevice, Hardware, HardwareKind, hardware};
pub use given::{Behind, GivenDevices, MemoryOf, Reason, Refusal, Wish, give};
pub use hart::{BoardHart, Extensions};
pub use interrupts::{Aplic, Controller, Delivery, Imsic, Interrupts, Wired};
pub use lack::Lack;
pub use memory::Bank;
pub use range::Range;
pub use structure::Fault;
pub use survey::{Board, Survey};
pub use tree::{Node, Tree, TreeError};

#[cfg(test)]
mod tests;
