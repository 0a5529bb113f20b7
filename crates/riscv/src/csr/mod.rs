//! Control and status registers: numbers and fields.
//!
//! RISC-V privileged architecture, chapters "Control and Status Registers (CSRs)", "Machine-Level ISA", "Supervisor-Level
//! ISA" and "Hypervisor Extension"; RISC-V Advanced Interrupt Architecture 1.0, chapters 2 and 6.

pub mod address_translation;
pub mod environment;
pub mod event;
pub mod hstatus;
pub mod hvictl;
pub mod interrupt;
pub mod number;
pub mod security;
pub mod state_enable;
pub mod status;
pub mod trigger;
