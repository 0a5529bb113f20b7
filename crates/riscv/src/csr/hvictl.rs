//! Fields of hvictl (AIA, section 6.3.2).

/// Traps VS-mode where a virtual interrupt would be seen.
pub const VTI: u64 = 1 << 30;
/// Place of the lowest bit of [`IID`].
pub const IID_SHIFT: u32 = 16;
/// Identity of the virtual interrupt.
pub const IID: u64 = 0xfff << IID_SHIFT;
/// Default priority against a supervisor external interrupt.
pub const DPR: u64 = 1 << 9;
/// The priority is that of the virtual interrupt, not 1 alone.
pub const IPRIOM: u64 = 1 << 8;
/// Priority number of the virtual interrupt.
pub const IPRIO: u64 = 0xff;
