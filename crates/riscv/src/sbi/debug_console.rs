//! Functions of the debug console extension (chapter 12).

/// `sbi_debug_console_write`.
pub const WRITE: u64 = 0;
/// `sbi_debug_console_read`.
pub const READ: u64 = 1;
/// `sbi_debug_console_write_byte`.
pub const WRITE_BYTE: u64 = 2;
