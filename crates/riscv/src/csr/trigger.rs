//! Fields of tdata1 (RISC-V Debug Specification 1.0, "Sdtrig", sections "Trigger Data 1", "Match Control", "Match Control Type 6",
//! "Instruction Count").

/// Place of the lowest bit of type, which is 4 bits wide.
pub const TYPE_SHIFT: u32 = 60;
/// Type: address match in the older form.
pub const MATCH: u64 = 2;
/// Type: instruction count.
pub const COUNT: u64 = 3;
/// Type: address match.
pub const MATCH6: u64 = 6;
/// Type: disabled.
pub const DISABLED: u64 = 15;

/// The trigger belongs to a debugger outside of the hart (dmode).
pub const OUTSIDE: u64 = 1 << 59;

/// Of both forms of address match: loads.
pub const LOAD: u64 = 1 << 0;
/// Of both forms of address match: stores.
pub const STORE: u64 = 1 << 1;
/// Of both forms of address match: execution.
pub const EXECUTE: u64 = 1 << 2;
/// Of both forms of address match: U-mode.
pub const U: u64 = 1 << 3;
/// Of both forms of address match: S-mode.
pub const S: u64 = 1 << 4;
/// Of both forms of address match: M-mode.
pub const M: u64 = 1 << 6;
/// Place of the lowest bit of match, which is 4 bits wide.
pub const MATCH_SHIFT: u32 = 7;
/// match of both forms.
pub const MATCHING: u64 = 0xf << MATCH_SHIFT;
/// Value of match: a compare value equals tdata2.
pub const EQUAL: u64 = 0;
/// Value of match: a compare value is in the naturally aligned range that tdata2 encodes.
pub const NAPOT: u64 = 1;
/// Value of match: a compare value is tdata2 or greater.
pub const GREATER_OR_EQUAL: u64 = 2;
/// Value of match: a compare value is less than tdata2.
pub const LESS: u64 = 3;
/// Of the older address match: it has fired.
pub const HIT: u64 = 1 << 20;
/// Place of the lowest bit of size of the address match, which is 3 bits wide.
pub const SIZE_SHIFT: u32 = 16;
/// size of the address match.
pub const SIZE: u64 = 7 << SIZE_SHIFT;
/// Of the address match: it has fired before the instruction.
pub const HIT_BEFORE: u64 = 1 << 22;
/// Of the address match: VU-mode.
pub const VU: u64 = 1 << 23;
/// Of the address match: VS-mode.
pub const VS: u64 = 1 << 24;
/// Of the address match: it has fired behind the instruction, or, with [`HIT_BEFORE`], at once behind it.
pub const HIT_BEHIND: u64 = 1 << 25;
/// Of the address match: it may have fired in error.
pub const UNCERTAIN: u64 = 1 << 26;

/// Of the instruction count: U-mode.
pub const COUNT_U: u64 = 1 << 6;
/// Of the instruction count: S-mode.
pub const COUNT_S: u64 = 1 << 7;
/// Of the instruction count: it fires before the next instruction.
pub const PENDING: u64 = 1 << 8;
/// Of the instruction count: M-mode.
pub const COUNT_M: u64 = 1 << 9;
/// Place of the lowest bit of count, which is 14 bits wide.
pub const COUNT_SHIFT: u32 = 10;
/// count of the instruction count.
pub const COUNTED: u64 = 0x3fff << COUNT_SHIFT;
/// Of the instruction count: it has fired.
pub const COUNT_HIT: u64 = 1 << 24;
/// Of the instruction count: VU-mode.
pub const COUNT_VU: u64 = 1 << 25;
/// Of the instruction count: VS-mode.
pub const COUNT_VS: u64 = 1 << 26;
