//! Incoming MSI Controller (RISC-V Advanced Interrupt Architecture 1.0, chapter 3).

/// Values of miselect, siselect and vsiselect that select registers of an interrupt file (section 3.7), and priority arrays
/// (section 2.1).
pub mod select {
    /// iprio0.
    pub const IPRIO: u64 = 0x30;
    /// iprio15.
    pub const IPRIO_LAST: u64 = 0x3f;
    /// eidelivery.
    pub const EIDELIVERY: u64 = 0x70;
    /// eithreshold.
    pub const EITHRESHOLD: u64 = 0x72;
    /// eip0.
    pub const EIP: u64 = 0x80;
    /// eip63.
    pub const EIP_LAST: u64 = 0xbf;
    /// eie0.
    pub const EIE: u64 = 0xc0;
    /// eie63.
    pub const EIE_LAST: u64 = 0xff;
}

/// Offset of seteipnum_le in the page of an interrupt file (section 3.5).
pub const SETEIPNUM_LE: u64 = 0x000;
/// Offset of seteipnum_be.
pub const SETEIPNUM_BE: u64 = 0x004;

/// eidelivery: the file delivers (section 3.8.1).
pub const DELIVER_FILE: u32 = 1;
/// eidelivery: a PLIC or an APLIC delivers instead.
pub const DELIVER_APLIC: u32 = 0x4000_0000;

/// Length of the page of an interrupt file, in bytes (section 3.5).
pub const PAGE_BYTES: u64 = 4096;
/// Place of the identity in mtopei, stopei and vstopei; the priority is below (section 3.9).
pub const TOPEI_IDENTITY_SHIFT: u32 = 16;
