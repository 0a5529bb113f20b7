//! Fields of menvcfg, henvcfg and senvcfg (sections "Machine Environment Configuration", "Hypervisor Environment
//! Configuration Register"; PMM: "Pointer Masking").

/// Fences of I/O order memory too.
pub const FIOM: u64 = 1 << 0;
/// Landing pads of the next lower mode (Zicfilp).
pub const LPE: u64 = 1 << 2;
/// Shadow stacks of the next lower mode (Zicfiss).
pub const SSE: u64 = 1 << 3;
/// Place of the lowest bit of [`CBIE`].
pub const CBIE_SHIFT: u32 = 4;
/// Effect of CBO.INVAL (Zicbom).
pub const CBIE: u64 = 3 << CBIE_SHIFT;
/// CBO.CLEAN and CBO.FLUSH execute (Zicbom).
pub const CBCFE: u64 = 1 << 6;
/// CBO.ZERO executes (Zicboz).
pub const CBZE: u64 = 1 << 7;
/// Place of the lowest bit of [`PMM`].
pub const PMM_SHIFT: u32 = 32;
/// Pointer masking of the next lower mode (Smnpm, Ssnpm). mseccfg has its own at the same place (Smmpm).
pub const PMM: u64 = 3 << PMM_SHIFT;
/// Double traps (Ssdbltrp).
pub const DTE: u64 = 1 << 59;
/// Supervisor mode has the counters that mcounteren shows it (Smcdeleg).
pub const CDE: u64 = 1 << 60;
/// Hardware updates accessed and dirty bits (Svadu).
pub const ADUE: u64 = 1 << 61;
/// Page-based memory types (Svpbmt).
pub const PBMTE: u64 = 1 << 62;
/// stimecmp or vstimecmp (Sstc).
pub const STCE: u64 = 1 << 63;
