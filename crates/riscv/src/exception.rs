//! Codes of synchronous exceptions, as the cause registers hold them (privileged architecture, sections "Machine Cause
//! Register" and "Trap Cause Codes" of the hypervisor extension).

/// Instruction address misaligned.
pub const FETCH_MISALIGNED: u64 = 0;
/// Instruction access fault.
pub const FETCH_ACCESS: u64 = 1;
/// Illegal instruction.
pub const ILLEGAL_INSTRUCTION: u64 = 2;
/// Breakpoint.
pub const BREAKPOINT: u64 = 3;
/// Load address misaligned.
pub const LOAD_MISALIGNED: u64 = 4;
/// Load access fault.
pub const LOAD_ACCESS: u64 = 5;
/// Store/AMO address misaligned.
pub const STORE_MISALIGNED: u64 = 6;
/// Store/AMO access fault.
pub const STORE_ACCESS: u64 = 7;
/// Environment call from U-mode or VU-mode.
pub const ECALL_FROM_U: u64 = 8;
/// Environment call from HS-mode.
pub const ECALL_FROM_HS: u64 = 9;
/// Environment call from VS-mode.
pub const ECALL_FROM_VS: u64 = 10;
/// Environment call from M-mode.
pub const ECALL_FROM_M: u64 = 11;
/// Instruction page fault.
pub const FETCH_PAGE: u64 = 12;
/// Load page fault.
pub const LOAD_PAGE: u64 = 13;
/// Store/AMO page fault.
pub const STORE_PAGE: u64 = 15;
/// Double trap (Ssdbltrp).
pub const DOUBLE_TRAP: u64 = 16;
/// Software check (Zicfilp, Zicfiss).
pub const SOFTWARE_CHECK: u64 = 18;
/// Instruction guest-page fault.
pub const FETCH_GUEST_PAGE: u64 = 20;
/// Load guest-page fault.
pub const LOAD_GUEST_PAGE: u64 = 21;
/// Virtual instruction.
pub const VIRTUAL_INSTRUCTION: u64 = 22;
/// Store/AMO guest-page fault.
pub const STORE_GUEST_PAGE: u64 = 23;
