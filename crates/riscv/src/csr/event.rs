//! Bits of the mhpmevent registers (section "Count Overflow and Mode-Based Filtering", Sscofpmf).

/// The counter has passed zero, and raises no further interrupt.
pub const OF: u64 = 1 << 63;
/// Nothing is counted in M-mode.
pub const MINH: u64 = 1 << 62;
/// Nothing is counted in HS-mode.
pub const SINH: u64 = 1 << 61;
/// Nothing is counted in U-mode.
pub const UINH: u64 = 1 << 60;
/// Nothing is counted in VS-mode.
pub const VSINH: u64 = 1 << 59;
/// Nothing is counted in VU-mode.
pub const VUINH: u64 = 1 << 58;
