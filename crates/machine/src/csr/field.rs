//! Fields of CSRs, named as in the privileged specification.

/// mstatus, sstatus and vsstatus.
pub mod status {
    #![allow(missing_docs)]
    pub const SIE: u64 = 1 << 1;
    pub const MIE: u64 = 1 << 3;
    pub const SPIE: u64 = 1 << 5;
    pub const MPIE: u64 = 1 << 7;
    pub const SPP: u64 = 1 << 8;
    pub const MPP: u64 = 3 << 11;
    pub const MPP_SHIFT: u32 = 11;
    pub const FS: u64 = 3 << 13;
    pub const MPRV: u64 = 1 << 17;
    pub const SUM: u64 = 1 << 18;
    pub const MXR: u64 = 1 << 19;
    pub const TVM: u64 = 1 << 20;
    pub const TW: u64 = 1 << 21;
    pub const TSR: u64 = 1 << 22;
    /// UXL = 2 and SXL = 2: 64 bits, read-only.
    pub const XL64: u64 = 0xa << 32;
    /// UXL = 2 alone, as sstatus shows it.
    pub const UXL64: u64 = 2 << 32;
    pub const GVA: u64 = 1 << 38;
    pub const MPV: u64 = 1 << 39;
    pub const SD: u64 = 1 << 63;

    /// Fields of sstatus and vsstatus besides the read-only UXL and SD.
    pub const SUPERVISOR: u64 = SIE | SPIE | SPP | FS | SUM | MXR;
    /// Writable fields of mstatus.
    pub const MACHINE: u64 = SUPERVISOR | MIE | MPIE | MPP | MPRV | TVM | TW | TSR | GVA | MPV;
}

/// hstatus.
pub mod hstatus {
    #![allow(missing_docs)]
    pub const GVA: u64 = 1 << 6;
    pub const SPV: u64 = 1 << 7;
    pub const SPVP: u64 = 1 << 8;
    pub const HU: u64 = 1 << 9;
    pub const VGEIN: u64 = 0x3f << 12;
    pub const VGEIN_SHIFT: u32 = 12;
    pub const VTVM: u64 = 1 << 20;
    pub const VTW: u64 = 1 << 21;
    pub const VTSR: u64 = 1 << 22;
    /// Pointer masking of HLV and HSV in U-mode as though in VU-mode: Ssnpm.
    pub const HUPMM: u64 = 3 << 48;
    pub const HUPMM_SHIFT: u32 = 48;
    /// VSXL = 2: 64 bits, read-only.
    pub const VSXL64: u64 = 2 << 32;
    pub const WRITABLE: u64 = GVA | SPV | SPVP | HU | VGEIN | VTVM | VTW | VTSR | HUPMM;
}

/// Interrupt numbers as bits of mip and mie.
pub mod interrupt {
    #![allow(missing_docs)]
    pub const SSI: u64 = 1 << 1;
    pub const VSSI: u64 = 1 << 2;
    pub const MSI: u64 = 1 << 3;
    pub const STI: u64 = 1 << 5;
    pub const VSTI: u64 = 1 << 6;
    pub const MTI: u64 = 1 << 7;
    pub const SEI: u64 = 1 << 9;
    pub const VSEI: u64 = 1 << 10;
    pub const MEI: u64 = 1 << 11;
    pub const SGEI: u64 = 1 << 12;
    /// Counter overflow: Sscofpmf.
    pub const LCOFI: u64 = 1 << 13;
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
    pub const OF: u64 = 1 << 63;
    pub const MINH: u64 = 1 << 62;
    pub const SINH: u64 = 1 << 61;
    pub const UINH: u64 = 1 << 60;
    pub const VSINH: u64 = 1 << 59;
    pub const VUINH: u64 = 1 << 58;
    pub const CONTROL: u64 = OF | MINH | SINH | UINH | VSINH | VUINH;
    /// The number of the event.
    pub const NUMBER: u64 = 0xff;
}

/// menvcfg, henvcfg and senvcfg.
pub mod envcfg {
    #![allow(missing_docs)]
    pub const FIOM: u64 = 1;
    pub const CBIE: u64 = 3 << 4;
    pub const CBIE_SHIFT: u32 = 4;
    pub const CBCFE: u64 = 1 << 6;
    pub const CBZE: u64 = 1 << 7;
    /// Pointer masking of the next lower mode: Smnpm, Ssnpm. mseccfg has it at the same place for
    /// M-mode: Smmpm.
    pub const PMM: u64 = 3 << 32;
    pub const PMM_SHIFT: u32 = 32;
    pub const ADUE: u64 = 1 << 61;
    pub const PBMTE: u64 = 1 << 62;
    pub const STCE: u64 = 1 << 63;
    pub const SUPERVISOR: u64 = FIOM | CBIE | CBCFE | CBZE | PMM;
    /// Fields of henvcfg that exist only while it is set in menvcfg.
    pub const GATED: u64 = ADUE | PBMTE | STCE;
    pub const MACHINE: u64 = SUPERVISOR | GATED;
}

/// mstateen0 and its likes.
pub mod stateen {
    #![allow(missing_docs)]
    pub const IMSIC: u64 = 1 << 58;
    pub const AIA: u64 = 1 << 59;
    pub const CSRIND: u64 = 1 << 60;
    pub const ENVCFG: u64 = 1 << 62;
    pub const SE: u64 = 1 << 63;
    /// Writable bits of mstateen0: F is present, so FCSR does not exist; nothing is custom.
    pub const WRITABLE0: u64 = IMSIC | AIA | CSRIND | ENVCFG | SE;
}

/// hvictl.
pub mod hvictl {
    #![allow(missing_docs)]
    pub const VTI: u64 = 1 << 30;
    pub const IID: u64 = 0xfff << 16;
    pub const IID_SHIFT: u32 = 16;
    pub const DPR: u64 = 1 << 9;
    pub const IPRIOM: u64 = 1 << 8;
    pub const IPRIO: u64 = 0xff;
    /// IID is six bits wide.
    pub const WRITABLE: u64 = VTI | (0x3f << 16) | DPR | IPRIOM | IPRIO;
}
