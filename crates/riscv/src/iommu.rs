//! IOMMU (RISC-V IOMMU Architecture Specification 1.0): registers, the device directory, commands and fault records.

/// Registers (chapter "Register layout"): offset of `capabilities`, a doubleword.
pub const CAPABILITIES: u64 = 0;
/// Offset of `fctl`, a word.
pub const FCTL: u64 = 8;
/// Offset of `ddtp`, a doubleword.
pub const DDTP: u64 = 16;
/// Offset of `cqb`, a doubleword.
pub const CQB: u64 = 24;
/// Offset of `cqh`, a word.
pub const CQH: u64 = 32;
/// Offset of `cqt`, a word.
pub const CQT: u64 = 36;
/// Offset of `fqb`, a doubleword.
pub const FQB: u64 = 40;
/// Offset of `fqh`, a word.
pub const FQH: u64 = 48;
/// Offset of `fqt`, a word.
pub const FQT: u64 = 52;
/// Offset of `cqcsr`, a word.
pub const CQCSR: u64 = 72;
/// Offset of `fqcsr`, a word.
pub const FQCSR: u64 = 76;
/// Offset of `pqcsr`, a word, where there is ATS.
pub const PQCSR: u64 = 80;

/// Fields of `capabilities`.
pub mod capabilities {
    /// Major part of the version, above four bits of the minor one.
    pub const MAJOR_SHIFT: u32 = 4;
    /// Bits of the major part.
    pub const MAJOR_MASK: u64 = 0xf;
    /// Bit of a G-stage mode, less the mode's number in `iohgatp`: Sv39x4 is mode 8 and bit 17.
    pub const GUEST_MODE_SHIFT: u64 = 9;
    /// MSI page tables, and device contexts of 64 bytes.
    pub const MSI_FLAT: u64 = 1 << 22;
    /// PCIe's address translation services, and a queue of page requests.
    pub const ATS: u64 = 1 << 25;
}

/// Fields of `fctl` that must be 0 for little-endian tables of 64-bit entries.
pub const FCTL_BE_GXL: u32 = 1 << 0 | 1 << 2;

/// Fields of `ddtp`.
pub mod ddtp {
    /// The mode.
    pub const MODE: u64 = 0xf;
    /// Mode in which all accesses are refused.
    pub const OFF: u64 = 0;
    /// Mode of a directory of one level; those of two and three follow.
    pub const ONE_LEVEL: u64 = 2;
    /// The last write is still carried out.
    pub const BUSY: u64 = 1 << 4;
}

/// Place of the page number in `ddtp`, in the bases of queues, and in entries of the directory.
pub const PPN_SHIFT: u32 = 10;
/// Bits of a page number.
pub const PPN_MASK: u64 = (1 << 44) - 1;

/// Fields of `cqcsr`, `fqcsr` and `pqcsr`.
pub mod queue {
    /// Enables the queue.
    pub const ENABLE: u32 = 1 << 0;
    /// Faults of the queue: memory, overflow or time-out, and an illegal command. Writing 1 clears.
    pub const FAULTS: u32 = 7 << 8;
    /// The queue is on.
    pub const ON: u32 = 1 << 16;
    /// The last write is still carried out.
    pub const BUSY: u32 = 1 << 17;
}

/// V of entries of the directory, and of `tc` in a device context.
pub const VALID: u64 = 1 << 0;
/// DTF of `tc`: faults of translation are not reported.
pub const TC_DTF: u64 = 1 << 4;

/// Commands (chapter "Command-Queue").
pub mod command {
    /// IOTINVAL.VMA: drops translations of the first stage.
    pub const IOTINVAL_VMA: u64 = 1;
    /// IOTINVAL.GVMA: drops translations of the second stage.
    pub const IOTINVAL_GVMA: u64 = 1 | 1 << 7;
    /// AV of IOTINVAL: of one page.
    pub const AV: u64 = 1 << 10;
    /// GV of IOTINVAL: of one GSCID.
    pub const GV: u64 = 1 << 33;
    /// Place of the GSCID.
    pub const GSCID_SHIFT: u32 = 44;
    /// Place of the page number in the second doubleword.
    pub const PAGE_SHIFT: u32 = 10;
    /// IOFENCE.C with PR and PW: earlier commands are done, and accesses of devices are seen by all.
    pub const IOFENCE: u64 = 2 | 1 << 12 | 1 << 13;
    /// IODIR.INVAL_DDT: drops all entries of the directory.
    pub const IODIR_INVAL_DDT: u64 = 3;
    /// Bytes of a command.
    pub const BYTES: u64 = 16;
}

/// Fault records (chapter "Fault/Event-Queue").
pub mod fault {
    /// Bytes of a record.
    pub const BYTES: u64 = 32;
    /// Bits of the cause.
    pub const CAUSE: u64 = 0xfff;
    /// Place of the device's id.
    pub const DEVICE_SHIFT: u32 = 40;
    /// Offset of the address.
    pub const ADDRESS: u64 = 16;
}
