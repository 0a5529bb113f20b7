//! Control and status registers of HS-mode: numbers and fields.
//!
//! Numbers and fields are those of the RISC-V privileged architecture (chapters "Supervisor-Level ISA" and
//! "Hypervisor Extension") and of the Advanced Interrupt Architecture (chapters 2, 3 and 6).

/// Numbers of the registers that the hypervisor reads or writes.
pub mod number {
    pub const SSTATUS: u16 = 0x100;
    pub const SIE: u16 = 0x104;
    pub const STVEC: u16 = 0x105;
    pub const SCOUNTEREN: u16 = 0x106;
    pub const SENVCFG: u16 = 0x10A;
    pub const SSCRATCH: u16 = 0x140;
    pub const SEPC: u16 = 0x141;
    pub const SCAUSE: u16 = 0x142;
    pub const STVAL: u16 = 0x143;
    pub const SIP: u16 = 0x144;
    pub const STIMECMP: u16 = 0x14D;
    pub const SISELECT: u16 = 0x150;
    pub const SIREG: u16 = 0x151;
    pub const STOPEI: u16 = 0x15C;
    pub const VSSTATUS: u16 = 0x200;
    pub const VSIE: u16 = 0x204;
    pub const VSTVEC: u16 = 0x205;
    pub const VSSCRATCH: u16 = 0x240;
    pub const VSEPC: u16 = 0x241;
    pub const VSCAUSE: u16 = 0x242;
    pub const VSTVAL: u16 = 0x243;
    pub const VSIP: u16 = 0x244;
    pub const VSTIMECMP: u16 = 0x24D;
    pub const VSISELECT: u16 = 0x250;
    pub const VSIREG: u16 = 0x251;
    pub const VSATP: u16 = 0x280;
    pub const HSTATUS: u16 = 0x600;
    pub const HEDELEG: u16 = 0x602;
    pub const HIDELEG: u16 = 0x603;
    pub const HIE: u16 = 0x604;
    pub const HTIMEDELTA: u16 = 0x605;
    pub const HCOUNTEREN: u16 = 0x606;
    pub const HGEIE: u16 = 0x607;
    pub const HVIEN: u16 = 0x608;
    pub const HVICTL: u16 = 0x609;
    pub const HENVCFG: u16 = 0x60A;
    pub const HSTATEEN0: u16 = 0x60C;
    pub const HTVAL: u16 = 0x643;
    pub const HIP: u16 = 0x644;
    pub const HVIP: u16 = 0x645;
    pub const HTINST: u16 = 0x64A;
    pub const HGATP: u16 = 0x680;
    pub const CYCLE: u16 = 0xC00;
    pub const TIME: u16 = 0xC01;
    /// hpmcounter n is `HPMCOUNTER0` + n, for n from 3 to 31.
    pub const HPMCOUNTER0: u16 = 0xC00;
    pub const SCOUNTOVF: u16 = 0xDA0;
    pub const HGEIP: u16 = 0xE12;
}

/// Fields of sstatus and vsstatus.
pub mod status {
    pub const SIE: u64 = 1 << 1;
    pub const SPIE: u64 = 1 << 5;
    pub const SPP: u64 = 1 << 8;
    pub const SUM: u64 = 1 << 18;
    pub const MXR: u64 = 1 << 19;
    pub const FS: u64 = 3 << 13;
    pub const FS_INITIAL: u64 = 1 << 13;
    pub const FS_CLEAN: u64 = 2 << 13;
    pub const FS_DIRTY: u64 = 3 << 13;
}

/// Fields of hstatus.
pub mod hstatus {
    pub const SPV: u64 = 1 << 7;
    pub const SPVP: u64 = 1 << 8;
    pub const VGEIN_SHIFT: u32 = 12;
    pub const VGEIN: u64 = 0x3f << VGEIN_SHIFT;
    pub const VTVM: u64 = 1 << 20;
    pub const VTW: u64 = 1 << 21;
    /// VSXL = 2: VS-mode is 64 bits wide.
    pub const VSXL_64: u64 = 2 << 32;
}

/// Fields of henvcfg.
pub mod environment {
    /// CBIE and CBCFE: the guest manages cache blocks (Zicbom).
    pub const CACHE_BLOCKS: u64 = 0b111 << 4;
    /// Hardware sets the accessed and dirty bits of VS-stage entries.
    pub const ADUE: u64 = 1 << 61;
    /// Page-based memory types in VS-stage entries.
    pub const PBMTE: u64 = 1 << 62;
}

/// Bits of sie, sip, hie, hip, hvip and hideleg.
pub mod interrupt {
    pub const VSSI: u64 = 1 << 2;
    pub const STI: u64 = 1 << 5;
    pub const VSTI: u64 = 1 << 6;
    pub const SEI: u64 = 1 << 9;
    pub const VSEI: u64 = 1 << 10;
    pub const SGEI: u64 = 1 << 12;
    /// A counter has passed zero (Sscofpmf): in sie and sip the hart's own, in hvien and hvip the guest's.
    pub const LCOFI: u64 = 1 << 13;
    /// In hvien, hvip and a guest's sie and sip: the form of allocation has changed.
    pub const NOTIFICATION: u64 = 1 << abi::sbi::NOTIFICATION_INTERRUPT;
    /// The interrupt bit of scause.
    pub const CAUSE: u64 = 1 << 63;
}

/// Fields of hvictl.
pub mod hvictl {
    /// IID = 9, IPRIO = 1: a supervisor external interrupt that no guest file gives a priority has this one.
    pub const EXTERNAL_WITH_PRIORITY_1: u64 = 9 << 16 | 1;
}

/// Exception codes (scause) of the privileged architecture.
pub mod exception {
    pub const FETCH_ACCESS: u64 = 1;
    pub const ILLEGAL_INSTRUCTION: u64 = 2;
    pub const LOAD_ACCESS: u64 = 5;
    pub const STORE_ACCESS: u64 = 7;
    pub const ECALL_FROM_VS: u64 = 10;
    pub const FETCH_PAGE: u64 = 12;
    pub const LOAD_PAGE: u64 = 13;
    pub const STORE_PAGE: u64 = 15;
    pub const FETCH_GUEST_PAGE: u64 = 20;
    pub const LOAD_GUEST_PAGE: u64 = 21;
    pub const VIRTUAL_INSTRUCTION: u64 = 22;
    pub const STORE_GUEST_PAGE: u64 = 23;
}
