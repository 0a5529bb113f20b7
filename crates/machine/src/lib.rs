//! A deterministic, cycle-accounting SMP RISC-V computer.

pub mod board;
pub mod device;
pub mod float;
