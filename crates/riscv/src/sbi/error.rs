//! Error codes (chapter 3, table "Standard SBI Errors").

/// The call was carried out.
pub const SUCCESS: i64 = 0;
/// Failed.
pub const FAILED: i64 = -1;
/// Not supported.
pub const NOT_SUPPORTED: i64 = -2;
/// Invalid parameter.
pub const INVALID_PARAMETER: i64 = -3;
/// Denied or not allowed.
pub const DENIED: i64 = -4;
/// Invalid address.
pub const INVALID_ADDRESS: i64 = -5;
/// Already available.
pub const ALREADY_AVAILABLE: i64 = -6;
/// Already started.
pub const ALREADY_STARTED: i64 = -7;
/// Already stopped.
pub const ALREADY_STOPPED: i64 = -8;
/// Shared memory is not available.
pub const NO_SHARED_MEMORY: i64 = -9;
/// The state does not permit it.
pub const INVALID_STATE: i64 = -10;
/// A range has a member that does not exist.
pub const BAD_RANGE: i64 = -11;
/// Denied or not allowed because of a lock.
pub const DENIED_LOCKED: i64 = -14;
/// Lowest code.
pub const LOWEST: i64 = DENIED_LOCKED;
