//! CSR numbers: privileged specification, "Control and Status Registers (CSRs)", and the Advanced
//! Interrupt Architecture, "Control and Status Registers (CSRs) Added to Harts".

#![allow(missing_docs)]

macro_rules! numbers {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(pub const $name: u16 = $number;)*
    };
}

numbers! {
    FFLAGS = 0x001, FRM = 0x002, FCSR = 0x003,
    CYCLE = 0xc00, TIME = 0xc01, INSTRET = 0xc02, HPMCOUNTER3 = 0xc03, HPMCOUNTER31 = 0xc1f,

    SSTATUS = 0x100, SIE = 0x104, STVEC = 0x105, SCOUNTEREN = 0x106, SENVCFG = 0x10a,
    SSTATEEN0 = 0x10c, SSTATEEN3 = 0x10f,
    SSCRATCH = 0x140, SEPC = 0x141, SCAUSE = 0x142, STVAL = 0x143, SIP = 0x144, STIMECMP = 0x14d,
    SISELECT = 0x150, SIREG = 0x151, STOPEI = 0x15c, SATP = 0x180, SCOUNTOVF = 0xda0,
    STOPI = 0xdb0,

    HSTATUS = 0x600, HEDELEG = 0x602, HIDELEG = 0x603, HIE = 0x604, HTIMEDELTA = 0x605,
    HCOUNTEREN = 0x606, HGEIE = 0x607, HVIEN = 0x608, HVICTL = 0x609, HENVCFG = 0x60a,
    HSTATEEN0 = 0x60c, HSTATEEN3 = 0x60f,
    HTVAL = 0x643, HIP = 0x644, HVIP = 0x645, HVIPRIO1 = 0x646, HVIPRIO2 = 0x647, HTINST = 0x64a,
    HGATP = 0x680, HGEIP = 0xe12,

    VSSTATUS = 0x200, VSIE = 0x204, VSTVEC = 0x205, VSSCRATCH = 0x240, VSEPC = 0x241,
    VSCAUSE = 0x242, VSTVAL = 0x243, VSIP = 0x244, VSTIMECMP = 0x24d, VSISELECT = 0x250,
    VSIREG = 0x251, VSTOPEI = 0x25c, VSATP = 0x280, VSTOPI = 0xeb0,

    MSTATUS = 0x300, MISA = 0x301, MEDELEG = 0x302, MIDELEG = 0x303, MIE = 0x304, MTVEC = 0x305,
    MCOUNTEREN = 0x306, MVIEN = 0x308, MVIP = 0x309, MENVCFG = 0x30a, MSTATEEN0 = 0x30c,
    MSTATEEN3 = 0x30f, MCOUNTINHIBIT = 0x320, MHPMEVENT3 = 0x323, MHPMEVENT31 = 0x33f,
    MSCRATCH = 0x340, MEPC = 0x341, MCAUSE = 0x342, MTVAL = 0x343, MIP = 0x344, MTINST = 0x34a,
    MTVAL2 = 0x34b, MISELECT = 0x350, MIREG = 0x351, MTOPEI = 0x35c,
    MSECCFG = 0x747,
    PMPCFG0 = 0x3a0, PMPCFG2 = 0x3a2, PMPCFG4 = 0x3a4, PMPCFG6 = 0x3a6, PMPCFG8 = 0x3a8, PMPCFG10 = 0x3aa,
    PMPCFG12 = 0x3ac, PMPCFG14 = 0x3ae, PMPADDR0 = 0x3b0, PMPADDR15 = 0x3bf, PMPADDR16 = 0x3c0, PMPADDR63 = 0x3ef,
    MCYCLE = 0xb00, MINSTRET = 0xb02, MHPMCOUNTER3 = 0xb03, MHPMCOUNTER31 = 0xb1f,
    MVENDORID = 0xf11, MARCHID = 0xf12, MIMPID = 0xf13, MHARTID = 0xf14, MCONFIGPTR = 0xf15,
    MTOPI = 0xfb0,
}
