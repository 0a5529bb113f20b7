//! Control and status registers of HS-mode: access to them, and the numbers and fields that the hypervisor uses.

pub use super::isa::csr::{clear, read, set, swap, write};
pub use riscv::csr::{environment, hstatus, interrupt, number, status};
pub use riscv::exception;

use riscv::csr::hvictl;
use riscv::interrupt::SUPERVISOR_EXTERNAL;

/// The form of allocation has changed: a bit of hvien, hvip and a guest's sie and sip.
pub const NOTIFICATION: u64 = 1 << abi::sbi::NOTIFICATION_INTERRUPT;

/// hvictl with IID = 9 and IPRIO = 1: a supervisor external interrupt that no guest file gives a priority has this one.
pub const EXTERNAL_WITH_PRIORITY_1: u64 = (SUPERVISOR_EXTERNAL as u64) << hvictl::IID_SHIFT | 1;
