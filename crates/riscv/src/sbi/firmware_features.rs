//! Functions and features of the firmware features extension (chapter 18).

/// `sbi_fwft_set`.
pub const SET: u64 = 0;
/// `sbi_fwft_get`.
pub const GET: u64 = 1;

/// Feature: misaligned accesses trap to supervisor mode.
pub const MISALIGNED_DELEGATION: u64 = 0;
/// Feature: landing pads for supervisor mode.
pub const LANDING_PAD: u64 = 1;
/// Feature: shadow stacks for supervisor mode.
pub const SHADOW_STACK: u64 = 2;
/// Feature: double traps.
pub const DOUBLE_TRAP: u64 = 3;
/// Feature: the hart sets A and D bits of page-table entries.
pub const PTE_AD_HW_UPDATING: u64 = 4;
/// Feature: bits that pointer masking ignores in supervisor mode.
pub const POINTER_MASKING_PMLEN: u64 = 5;

/// Flag of a set: the value stays until the hart is reset.
pub const LOCK: u64 = 1 << 0;
