//! Fields of CSRs, named as in the privileged specification, and which of them this machine has.

/// mstatus, sstatus and vsstatus.
pub mod status {
    #![allow(missing_docs)]
    pub use riscv::csr::status::*;

    /// UXL = 2 and SXL = 2: 64 bits, read-only.
    pub const XL_64: u64 = UXL_64 | SXL_64;

    /// Fields of sstatus and vsstatus that exist in any hart, besides the read-only UXL and SD.
    pub const SUPERVISOR: u64 = SIE | SPIE | SPP | VS | FS | SUM | MXR;
    /// Fields of sstatus and vsstatus that options bring.
    pub const OPTIONAL: u64 = SPELP | SDT;
    /// Writable fields of mstatus that exist in any hart.
    pub const MACHINE: u64 = SUPERVISOR | MIE | MPIE | MPP | MPRV | TVM | TW | TSR | GVA | MPV;
}

/// hstatus.
pub mod hstatus {
    #![allow(missing_docs)]
    pub use riscv::csr::hstatus::*;

    pub const WRITABLE: u64 = GVA | SPV | SPVP | HU | VGEIN | VTVM | VTW | VTSR | HUPMM;
}

/// Interrupt numbers as bits of mip and mie.
pub mod interrupt {
    #![allow(missing_docs)]
    pub use riscv::csr::interrupt::*;

    pub const SUPERVISOR: u64 = SSI | STI | SEI;
    /// Interrupts that mideleg can delegate.
    pub const DELEGABLE: u64 = SUPERVISOR | LCOFI;
    pub const MACHINE: u64 = MSI | MTI | MEI;
    pub const VIRTUAL: u64 = VSSI | VSTI | VSEI;
    pub const HYPERVISOR: u64 = VIRTUAL | SGEI;
    /// Interrupts that hvien and hvip can inject into guests (AIA, "Virtual interrupts for VS level"): counter overflow, and major
    /// interrupts 24 to 31, which are designated for custom use ("Interrupt identities") and exist for guests alone here.
    pub const INJECTED: u64 = LCOFI | 0xff << 24;
    pub const ALL: u64 = SUPERVISOR | MACHINE | HYPERVISOR | LCOFI;
}

/// mhpmevent: Sscofpmf.
pub mod event {
    #![allow(missing_docs)]
    pub use riscv::csr::event::*;

    /// Modes in which nothing is counted: of mcyclecfg and minstretcfg too (Smcntrpmf).
    pub const FILTER: u64 = MINH | SINH | UINH | VSINH | VUINH;
    pub const CONTROL: u64 = OF | FILTER;
    /// The number of the event.
    pub const NUMBER: u64 = 0xff;
}

/// menvcfg, henvcfg and senvcfg.
pub mod envcfg {
    #![allow(missing_docs)]
    pub use riscv::csr::environment::*;
    /// The value of CBIE that makes CBO.INVAL a flush.
    pub const CBIE_FLUSH: u64 = 1 << CBIE_SHIFT;

    /// Fields of all three that exist in any hart.
    pub const SUPERVISOR: u64 = FIOM | CBIE | CBCFE | CBZE | PMM;
    /// Fields of henvcfg that exist only while it is set in menvcfg.
    pub const GATED: u64 = ADUE | PBMTE | STCE | SSE | DTE;
    pub const MACHINE: u64 = SUPERVISOR | LPE | CDE | GATED;
}

/// mseccfg.
pub mod security {
    #![allow(missing_docs)]
    pub use riscv::csr::security::*;
}

/// mstateen0 and its likes.
pub mod stateen {
    #![allow(missing_docs)]
    pub use riscv::csr::state_enable::*;

    /// Writable bits of mstateen0: F is present, so FCSR does not exist; nothing is custom.
    pub const WRITABLE0: u64 = IMSIC | AIA | CSRIND | ENVCFG | SE;
}

/// hvictl.
pub mod hvictl {
    #![allow(missing_docs)]
    pub use riscv::csr::hvictl::*;

    /// IID is six bits wide.
    pub const WRITABLE: u64 = VTI | (0x3f << 16) | DPR | IPRIOM | IPRIO;
}
