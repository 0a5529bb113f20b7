//! Functions, states and suspend types of hart state management (chapter 9).

/// `sbi_hart_start`.
pub const START: u64 = 0;
/// `sbi_hart_stop`.
pub const STOP: u64 = 1;
/// `sbi_hart_get_status`.
pub const STATUS: u64 = 2;
/// `sbi_hart_suspend`.
pub const SUSPEND: u64 = 3;

/// State: the hart executes.
pub const STARTED: u64 = 0;
/// State: the hart does not execute in supervisor mode.
pub const STOPPED: u64 = 1;
/// State: a start was asked for.
pub const START_PENDING: u64 = 2;
/// State: a stop was asked for.
pub const STOP_PENDING: u64 = 3;
/// State: the hart is suspended.
pub const SUSPENDED: u64 = 4;

/// Suspend type: default, registers and CSRs are kept.
pub const RETENTIVE: u64 = 0;
/// Suspend type: default, registers and CSRs are lost.
pub const NON_RETENTIVE: u64 = 0x8000_0000;
