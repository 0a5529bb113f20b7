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

/// Offset of `ipsr`, a word.
pub const IPSR: u64 = 84;
/// Offset of `icvec`, a doubleword.
pub const ICVEC: u64 = 760;
/// Offset of `msi_cfg_tbl`: 16 entries.
pub const MSI_TABLE: u64 = 768;
/// Bytes of an entry of `msi_cfg_tbl`: address, data, vector control.
pub const MSI_ENTRY_BYTES: u64 = 16;
/// Bytes of the register file.
pub const REGISTER_BYTES: u64 = 4096;

/// Fields of `capabilities`.
pub mod capabilities {
    /// Major part of the version, above four bits of the minor one.
    pub const MAJOR_SHIFT: u32 = 4;
    /// Bits of the major part.
    pub const MAJOR_MASK: u64 = 0xf;
    /// Bit of a G-stage mode, less the mode's number in `iohgatp`: Sv39x4 is mode 8 and bit 17.
    pub const GUEST_MODE_SHIFT: u64 = 9;
    /// Version 1.0.
    pub const VERSION: u64 = 0x10;
    /// Bit of a first-stage mode, less the mode's number in `iosatp`: Sv39 is mode 8 and bit 9.
    pub const MODE_SHIFT: u64 = 1;
    /// Memory types of pages.
    pub const SVPBMT: u64 = 1 << 15;
    /// Memory-resident interrupt files are updated atomically.
    pub const AMO_MRIF: u64 = 1 << 21;
    /// MSI page tables lead to memory-resident interrupt files.
    pub const MSI_MRIF: u64 = 1 << 23;
    /// A and D bits are updated.
    pub const AMO_HWAD: u64 = 1 << 24;
    /// Interrupts by wires and by messages, as `fctl` says.
    pub const IGS_BOTH: u64 = 2 << 28;
    /// Place of the number of bits of physical addresses.
    pub const PAS_SHIFT: u32 = 32;
    /// Process directories of one level; those of two and three follow.
    pub const PD8: u64 = 1 << 38;
    /// MSI page tables, and device contexts of 64 bytes.
    pub const MSI_FLAT: u64 = 1 << 22;
    /// PCIe's address translation services, and a queue of page requests.
    pub const ATS: u64 = 1 << 25;
}

/// Fields of `fctl` that must be 0 for little-endian tables of 64-bit entries.
pub const FCTL_BE_GXL: u32 = 1 << 0 | 1 << 2;

/// WSI of `fctl`: interrupts by wires.
pub const FCTL_WSI: u32 = 1 << 1;

/// Fields of `ddtp`.
pub mod ddtp {
    /// The mode.
    pub const MODE: u64 = 0xf;
    /// Mode in which all accesses are refused.
    pub const OFF: u64 = 0;
    /// Mode in which addresses are physical ones.
    pub const BARE: u64 = 1;
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
    /// Enables interrupts of the queue.
    pub const INTERRUPT_ENABLE: u32 = 1 << 1;
    /// A fault of memory.
    pub const MEMORY_FAULT: u32 = 1 << 8;
    /// `fqof`: a record was lost.
    pub const OVERFLOW: u32 = 1 << 9;
    /// `cmd_ill`: a command is illegal.
    pub const ILLEGAL: u32 = 1 << 10;
    /// `fence_w_ip`: a fence asked for an interrupt.
    pub const FENCE_INTERRUPT: u32 = 1 << 11;
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

/// Fields of `tc` in a device context (chapter "Device-Directory-Table").
pub mod control {
    /// EN_ATS, EN_PRI, T2GPA and PRPR, which need ATS.
    pub const ATS: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;
    /// PDTV: `fsc` leads to a process directory.
    pub const PROCESSES: u64 = 1 << 5;
    /// GADE: A and D of the second stage are updated.
    pub const GUEST_UPDATE: u64 = 1 << 7;
    /// SADE: A and D of the first stage are updated.
    pub const UPDATE: u64 = 1 << 8;
    /// DPE: accesses without a process have process 0.
    pub const DEFAULT_PROCESS: u64 = 1 << 9;
    /// SBE and SXL.
    pub const BIG_OR_NARROW: u64 = 1 << 10 | 1 << 11;
    /// Reserved bits.
    pub const RESERVED: u64 = 0xffff_ffff_00ff_f000;
}

/// Fields of `ta` in a process context.
pub mod process {
    /// ENS: accesses with supervisor privilege are allowed.
    pub const SUPERVISOR: u64 = 1 << 1;
    /// SUM: those may reach pages of users.
    pub const USER_PAGES: u64 = 1 << 2;
    /// Reserved bits.
    pub const RESERVED: u64 = 0xffff_ffff_0000_0ff8;
}

/// Entries of MSI page tables (Advanced Interrupt Architecture 1.0, chapter "IOMMU Support for MSIs to Virtual Machines").
pub mod message {
    /// Bytes of an entry.
    pub const BYTES: u64 = 16;
    /// C: the entry is a maker's own.
    pub const CUSTOM: u64 = 1 << 63;
    /// Place of the mode M.
    pub const MODE_SHIFT: u32 = 1;
    /// M: a memory-resident interrupt file.
    pub const MRIF: u64 = 1;
    /// M: a page.
    pub const PAGE: u64 = 3;
}

/// Causes of faults besides those of harts.
pub mod cause {
    /// All inbound transactions disallowed.
    pub const OFF: u16 = 256;
    /// DDT entry load access fault.
    pub const DIRECTORY_ACCESS: u16 = 257;
    /// DDT entry not valid.
    pub const DIRECTORY_INVALID: u16 = 258;
    /// DDT entry misconfigured.
    pub const DIRECTORY_MISCONFIGURED: u16 = 259;
    /// Transaction type disallowed.
    pub const DISALLOWED: u16 = 260;
    /// MSI PTE load access fault.
    pub const MESSAGE_ACCESS: u16 = 261;
    /// MSI PTE not valid.
    pub const MESSAGE_INVALID: u16 = 262;
    /// MSI PTE misconfigured.
    pub const MESSAGE_MISCONFIGURED: u16 = 263;
    /// MRIF access fault.
    pub const MRIF_ACCESS: u16 = 264;
    /// PDT entry load access fault.
    pub const PROCESS_ACCESS: u16 = 265;
    /// PDT entry not valid.
    pub const PROCESS_INVALID: u16 = 266;
    /// PDT entry misconfigured.
    pub const PROCESS_MISCONFIGURED: u16 = 267;
    /// IOMMU MSI write access fault.
    pub const OWN_MESSAGE: u16 = 273;
}

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
    /// Place of the process.
    pub const PROCESS_SHIFT: u32 = 12;
    /// PV: the access had a process.
    pub const HAS_PROCESS: u64 = 1 << 32;
    /// PRIV: the access had supervisor privilege.
    pub const PRIVILEGED: u64 = 1 << 33;
    /// Place of the type of the access: 1 fetch, 2 read, 3 write.
    pub const TYPE_SHIFT: u32 = 34;
    /// Offset of `iotval2`.
    pub const VALUE2: u64 = 24;
    /// Place of the device's id.
    pub const DEVICE_SHIFT: u32 = 40;
    /// Offset of the address.
    pub const ADDRESS: u64 = 16;
}
