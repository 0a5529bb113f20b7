//! Fields of satp, vsatp and hgatp of RV64 (sections "Supervisor Address Translation and Protection Register",
//! "Hypervisor Guest Address Translation and Protection Register").

/// Place of the lowest bit of MODE, which is 4 bits wide in all of them.
pub const MODE_SHIFT: u32 = 60;
/// MODE of each of them.
pub const MODE: u64 = 0xf << MODE_SHIFT;
/// Value of MODE: no translation.
pub const BARE: u64 = 0;
/// Value of MODE: Sv39, of hgatp Sv39x4.
pub const SV39: u64 = 8;
/// Value of MODE: Sv48, of hgatp Sv48x4.
pub const SV48: u64 = 9;
/// Value of MODE: Sv57, of hgatp Sv57x4.
pub const SV57: u64 = 10;
/// Place of the lowest bit of satp.ASID.
pub const ASID_SHIFT: u32 = 44;
/// Largest value of satp.ASID.
pub const ASID_MAX: u64 = 0xffff;
/// Place of the lowest bit of hgatp.VMID.
pub const VMID_SHIFT: u32 = 44;
/// Largest value of hgatp.VMID.
pub const VMID_MAX: u64 = 0x3fff;
/// PPN of each of them.
pub const PPN: u64 = (1 << 44) - 1;
