//! Advanced Platform-Level Interrupt Controller (RISC-V Advanced Interrupt Architecture 1.0, chapter 4).

/// Offsets in an interrupt domain's control region (section 4.5). Registers are words; of an array, the first and the last
/// have a name.
pub mod register {
    /// domaincfg.
    pub const DOMAINCFG: u64 = 0x0000;
    /// sourcecfg\[1\]. The register of source *i* is at 4 *i*.
    pub const SOURCECFG: u64 = 0x0004;
    /// sourcecfg\[1023\].
    pub const SOURCECFG_LAST: u64 = 0x0ffc;
    /// mmsiaddrcfg.
    pub const MMSIADDRCFG: u64 = 0x1bc0;
    /// mmsiaddrcfgh.
    pub const MMSIADDRCFGH: u64 = 0x1bc4;
    /// smsiaddrcfg.
    pub const SMSIADDRCFG: u64 = 0x1bc8;
    /// smsiaddrcfgh.
    pub const SMSIADDRCFGH: u64 = 0x1bcc;
    /// setip\[0\].
    pub const SETIP: u64 = 0x1c00;
    /// setip\[31\].
    pub const SETIP_LAST: u64 = 0x1c7c;
    /// setipnum.
    pub const SETIPNUM: u64 = 0x1cdc;
    /// in_clrip\[0\].
    pub const IN_CLRIP: u64 = 0x1d00;
    /// in_clrip\[31\].
    pub const IN_CLRIP_LAST: u64 = 0x1d7c;
    /// clripnum.
    pub const CLRIPNUM: u64 = 0x1ddc;
    /// setie\[0\].
    pub const SETIE: u64 = 0x1e00;
    /// setie\[31\].
    pub const SETIE_LAST: u64 = 0x1e7c;
    /// setienum.
    pub const SETIENUM: u64 = 0x1edc;
    /// clrie\[0\].
    pub const CLRIE: u64 = 0x1f00;
    /// clrie\[31\].
    pub const CLRIE_LAST: u64 = 0x1f7c;
    /// clrienum.
    pub const CLRIENUM: u64 = 0x1fdc;
    /// setipnum_le.
    pub const SETIPNUM_LE: u64 = 0x2000;
    /// setipnum_be.
    pub const SETIPNUM_BE: u64 = 0x2004;
    /// genmsi.
    pub const GENMSI: u64 = 0x3000;
    /// target\[1\]. The register of source *i* is at [`GENMSI`] + 4 *i*.
    pub const TARGET: u64 = 0x3004;
    /// target\[1023\].
    pub const TARGET_LAST: u64 = 0x3ffc;
    /// Interrupt delivery control structure of hart index 0 (section 4.8.1).
    pub const IDC: u64 = 0x4000;
}

/// Length of an interrupt delivery control structure, in bytes (section 4.8.1).
pub const IDC_BYTES: u64 = 32;

/// Offsets in an interrupt delivery control structure (section 4.8.1).
pub mod delivery {
    /// idelivery.
    pub const IDELIVERY: u64 = 0x00;
    /// iforce.
    pub const IFORCE: u64 = 0x04;
    /// ithreshold.
    pub const ITHRESHOLD: u64 = 0x08;
    /// topi.
    pub const TOPI: u64 = 0x18;
    /// claimi.
    pub const CLAIMI: u64 = 0x1c;
}

/// Highest source number (section 4.1).
pub const MAX_SOURCE: u32 = 1023;

/// domaincfg: bits 31:24, which read as 0x80 (section 4.5.1).
pub const DOMAINCFG_FIXED: u32 = 0x80 << 24;
/// domaincfg.IE: interrupts are enabled.
pub const DOMAINCFG_IE: u32 = 1 << 8;
/// domaincfg.DM: interrupts are delivered as messages.
pub const DOMAINCFG_DM: u32 = 1 << 2;

/// sourcecfg.D: the source is delegated (section 4.5.2).
pub const SOURCECFG_D: u32 = 1 << 10;
/// sourcecfg.SM, which says the mode of a source that is not delegated.
pub const SOURCECFG_SM: u32 = 7;

/// Values of sourcecfg.SM (section 4.5.2).
pub mod source_mode {
    /// Inactive in this domain.
    pub const INACTIVE: u32 = 0;
    /// Active, detached from the wire.
    pub const DETACHED: u32 = 1;
    /// Active, a rising edge.
    pub const EDGE1: u32 = 4;
    /// Active, a falling edge.
    pub const EDGE0: u32 = 5;
    /// Active, a high level.
    pub const LEVEL1: u32 = 6;
    /// Active, a low level.
    pub const LEVEL0: u32 = 7;
}

/// mmsiaddrcfgh.L: the address registers are locked (section 4.5.3).
pub const MMSIADDRCFGH_L: u32 = 1 << 31;
/// Defined fields of mmsiaddrcfgh: L, HHXS, LHXS, HHXW, LHXW and High Base PPN.
pub const MMSIADDRCFGH_FIELDS: u32 = MMSIADDRCFGH_L | 0x1f77_ffff;
/// Defined fields of smsiaddrcfgh: LHXS and High Base PPN (section 4.5.4).
pub const SMSIADDRCFGH_FIELDS: u32 = 0x0070_0fff;

/// genmsi.Busy (section 4.5.15).
pub const GENMSI_BUSY: u32 = 1 << 12;

/// Place of the lowest bit of Hart Index in target and genmsi (sections 4.5.15, 4.5.16).
pub const HART_INDEX_SHIFT: u32 = 18;
/// Hart Index of target and genmsi.
pub const HART_INDEX: u32 = 0x3fff << HART_INDEX_SHIFT;
/// Place of the lowest bit of Guest Index in target.
pub const GUEST_INDEX_SHIFT: u32 = 12;
/// Guest Index of target.
pub const GUEST_INDEX: u32 = 0x3f << GUEST_INDEX_SHIFT;
/// EIID of target and genmsi.
pub const EIID: u32 = 0x7ff;
/// IPRIO of target in direct delivery mode.
pub const IPRIO: u32 = 0xff;
