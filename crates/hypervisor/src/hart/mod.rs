//! Thin layer over one hart: registers, fences, world switch, firmware calls, and decoding of instructions.
//!
//! All instructions of a hart are in `isa`, which is chosen here and nowhere else: a RISC-V hart's instructions, or a
//! stand-in with which the library is tested on other computers.

#[cfg_attr(target_arch = "riscv64", path = "riscv64/mod.rs")]
#[cfg_attr(not(target_arch = "riscv64"), path = "host/mod.rs")]
mod isa;

pub mod capabilities;
pub mod common;
pub mod context;
pub mod counters;
pub mod csr;
pub mod custom;
pub mod debug_triggers;
pub mod decode;
pub mod device;
pub mod firmware;
pub mod instruction;
pub mod interrupt_file;
mod outcome;
pub mod unprivileged;
pub mod world;

#[cfg(test)]
pub use isa::fences_behind_devices;
pub use isa::{
    copy, count_down, devices_before_memory, entry, fence, memory_before_devices, pointer,
    set_pointer, stall_on_doubleword, stall_on_word, wait_for_interrupt,
};

/// Where the record of a hart that is started holds the top of its stack, in bytes from the record's address.
pub const STACK_TOP_OFFSET: usize = 0;

/// The hart's cycle counter.
#[inline]
#[must_use]
pub fn cycles() -> u64 {
    csr::read::<{ csr::number::CYCLE }>()
}

/// The board's time, in ticks of the timebase.
#[inline]
#[must_use]
pub fn time() -> u64 {
    csr::read::<{ csr::number::TIME }>()
}
