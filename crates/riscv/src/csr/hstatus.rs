//! Fields of hstatus (section "Hypervisor Status Register"; HUPMM: "Pointer Masking", Ssnpm).

/// The trap value is a guest virtual address.
pub const GVA: u64 = 1 << 6;
/// Virtualization mode before the trap to HS-mode.
pub const SPV: u64 = 1 << 7;
/// Privilege before the trap from V = 1.
pub const SPVP: u64 = 1 << 8;
/// User mode may execute HLV, HLVX and HSV.
pub const HU: u64 = 1 << 9;
/// Place of the lowest bit of [`VGEIN`].
pub const VGEIN_SHIFT: u32 = 12;
/// Number of the guest interrupt file.
pub const VGEIN: u64 = 0x3f << VGEIN_SHIFT;
/// Traps satp and SFENCE.VMA of VS-mode.
pub const VTVM: u64 = 1 << 20;
/// Traps WFI of VS-mode after a time limit.
pub const VTW: u64 = 1 << 21;
/// Traps SRET of VS-mode.
pub const VTSR: u64 = 1 << 22;
/// VSXL = 2: VS-mode is 64 bits wide.
pub const VSXL_64: u64 = 2 << 32;
/// Place of the lowest bit of [`HUPMM`].
pub const HUPMM_SHIFT: u32 = 48;
/// Pointer masking of HLV and HSV in U-mode.
pub const HUPMM: u64 = 3 << HUPMM_SHIFT;
