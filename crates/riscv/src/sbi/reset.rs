//! Function, types and reasons of the system reset extension (chapter 10).

/// `sbi_system_reset`.
pub const SYSTEM_RESET: u64 = 0;

/// Type: shutdown.
pub const SHUTDOWN: u64 = 0;
/// Type: cold reboot.
pub const COLD_REBOOT: u64 = 1;
/// Type: warm reboot.
pub const WARM_REBOOT: u64 = 2;
/// First type of vendors and platforms.
pub const FIRST_VENDOR_TYPE: u64 = 0xf000_0000;

/// Reason: none.
pub const NO_REASON: u64 = 0;
/// Reason: system failure.
pub const SYSTEM_FAILURE: u64 = 1;
