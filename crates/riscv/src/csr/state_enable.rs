//! Bits of mstateen0, hstateen0 and sstateen0 (section "Smstateen/Ssstateen Extensions").

/// Registers of the interrupt file.
pub const IMSIC: u64 = 1 << 58;
/// Other registers of the Advanced Interrupt Architecture.
pub const AIA: u64 = 1 << 59;
/// Registers of indirect access (Sscsrind).
pub const CSRIND: u64 = 1 << 60;
/// senvcfg and henvcfg.
pub const ENVCFG: u64 = 1 << 62;
/// The state-enable registers of the next lower modes.
pub const SE: u64 = 1 << 63;
