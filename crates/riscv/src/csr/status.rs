//! Fields of mstatus, sstatus and vsstatus (sections "Machine Status Registers", "Supervisor Status Register").

/// Supervisor interrupts are enabled.
pub const SIE: u64 = 1 << 1;
/// Machine interrupts are enabled.
pub const MIE: u64 = 1 << 3;
/// SIE before the trap.
pub const SPIE: u64 = 1 << 5;
/// MIE before the trap.
pub const MPIE: u64 = 1 << 7;
/// Privilege before the trap to supervisor mode.
pub const SPP: u64 = 1 << 8;
/// State of the vector unit.
pub const VS: u64 = 3 << 9;
/// Place of the lowest bit of [`VS`].
pub const VS_SHIFT: u32 = 9;
/// VS = Clean.
pub const VS_CLEAN: u64 = 2 << VS_SHIFT;
/// VS = Dirty.
pub const VS_DIRTY: u64 = 3 << VS_SHIFT;
/// Privilege before the trap to machine mode.
pub const MPP: u64 = 3 << MPP_SHIFT;
/// Place of the lowest bit of [`MPP`].
pub const MPP_SHIFT: u32 = 11;
/// State of the floating-point unit.
pub const FS: u64 = 3 << FS_SHIFT;
/// Place of the lowest bit of [`FS`].
pub const FS_SHIFT: u32 = 13;
/// FS = Initial.
pub const FS_INITIAL: u64 = 1 << FS_SHIFT;
/// FS = Clean.
pub const FS_CLEAN: u64 = 2 << FS_SHIFT;
/// FS = Dirty.
pub const FS_DIRTY: u64 = 3 << FS_SHIFT;
/// Loads and stores are made with the privilege of MPP.
pub const MPRV: u64 = 1 << 17;
/// Supervisor mode may reach pages of user mode.
pub const SUM: u64 = 1 << 18;
/// Loads may read executable pages.
pub const MXR: u64 = 1 << 19;
/// Traps satp and SFENCE.VMA.
pub const TVM: u64 = 1 << 20;
/// Traps WFI after a time limit.
pub const TW: u64 = 1 << 21;
/// Traps SRET.
pub const TSR: u64 = 1 << 22;
/// A landing pad was expected before the trap to supervisor mode (Zicfilp).
pub const SPELP: u64 = 1 << 23;
/// A trap to supervisor mode is a double trap (Ssdbltrp).
pub const SDT: u64 = 1 << 24;
/// UXL = 2: user mode is 64 bits wide.
pub const UXL_64: u64 = 2 << 32;
/// SXL = 2: supervisor mode is 64 bits wide.
pub const SXL_64: u64 = 2 << 34;
/// The trap value is a guest virtual address.
pub const GVA: u64 = 1 << 38;
/// Virtualization mode before the trap to machine mode.
pub const MPV: u64 = 1 << 39;
/// A landing pad was expected before the trap to machine mode (Zicfilp).
pub const MPELP: u64 = 1 << 41;
/// A trap to machine mode is a critical error (Smdbltrp).
pub const MDT: u64 = 1 << 42;
/// FS, VS or XS is Dirty.
pub const SD: u64 = 1 << 63;
