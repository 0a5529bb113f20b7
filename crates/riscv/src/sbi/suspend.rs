//! Function and sleep types of the system suspend extension (chapter 13).

/// `sbi_system_suspend`.
pub const SYSTEM_SUSPEND: u64 = 0;

/// Sleep type: suspend to RAM.
pub const SUSPEND_TO_RAM: u64 = 0;
