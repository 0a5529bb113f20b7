//! CSR numbers, and which are set and compared.

/// Names of CSRs by number.
macro_rules! numbers {
    ($($name:ident = $number:literal,)*) => {
        $(#[allow(missing_docs)] pub const $name: u16 = $number;)*

        /// The name of a CSR, in small letters.
        #[must_use]
        pub fn name(number: u16) -> String {
            match number {
                $($name => stringify!($name).to_lowercase(),)*
                _ => format!("csr {number:#x}"),
            }
        }
    };
}

numbers! {
    FFLAGS = 0x001, FRM = 0x002, FCSR = 0x003,
    CYCLE = 0xc00, TIME = 0xc01, INSTRET = 0xc02, HPMCOUNTER3 = 0xc03,
    SSTATUS = 0x100, SIE = 0x104, STVEC = 0x105, SCOUNTEREN = 0x106, SENVCFG = 0x10a,
    SSTATEEN0 = 0x10c, SSCRATCH = 0x140, SEPC = 0x141, SCAUSE = 0x142, STVAL = 0x143, SIP = 0x144,
    STIMECMP = 0x14d, SISELECT = 0x150, STOPEI = 0x15c, SATP = 0x180, STOPI = 0xdb0,
    VSSTATUS = 0x200, VSIE = 0x204, VSTVEC = 0x205, VSSCRATCH = 0x240, VSEPC = 0x241,
    VSCAUSE = 0x242, VSTVAL = 0x243, VSIP = 0x244, VSTIMECMP = 0x24d, VSATP = 0x280,
    VSTOPI = 0xeb0,
    MSTATUS = 0x300, MISA = 0x301, MEDELEG = 0x302, MIDELEG = 0x303, MIE = 0x304, MTVEC = 0x305,
    MCOUNTEREN = 0x306, MENVCFG = 0x30a, MSTATEEN0 = 0x30c, MCOUNTINHIBIT = 0x320,
    MSCRATCH = 0x340, MEPC = 0x341, MCAUSE = 0x342, MTVAL = 0x343, MIP = 0x344, MTINST = 0x34a,
    MTVAL2 = 0x34b, MSECCFG = 0x747, PMPCFG0 = 0x3a0, PMPADDR0 = 0x3b0, PMPADDR1 = 0x3b1, PMPADDR2 = 0x3b2,
    PMPADDR7 = 0x3b7, MTOPI = 0xfb0, MHARTID = 0xf14, MVENDORID = 0xf11,
    HSTATUS = 0x600, HEDELEG = 0x602, HIDELEG = 0x603, HIE = 0x604, HTIMEDELTA = 0x605,
    HCOUNTEREN = 0x606, HGEIE = 0x607, HVICTL = 0x609, HENVCFG = 0x60a, HSTATEEN0 = 0x60c,
    HTVAL = 0x643, HIP = 0x644, HVIP = 0x645, HTINST = 0x64a, HGATP = 0x680, HGEIP = 0xe12,
}

/// CSRs that the harness sets before each program, in this order.
pub const SET: [u16; 53] = [
    FCSR,
    MSECCFG,
    MEDELEG,
    MIDELEG,
    MIE,
    MCOUNTEREN,
    MENVCFG,
    MSTATEEN0,
    STVEC,
    SSCRATCH,
    SCOUNTEREN,
    SENVCFG,
    SSTATEEN0,
    SEPC,
    SCAUSE,
    STVAL,
    SATP,
    HEDELEG,
    HIDELEG,
    HCOUNTEREN,
    HENVCFG,
    HSTATEEN0,
    HGEIE,
    HTVAL,
    HTINST,
    HGATP,
    HVICTL,
    HTIMEDELTA,
    VSSTATUS,
    VSTVEC,
    VSSCRATCH,
    VSEPC,
    VSCAUSE,
    VSTVAL,
    VSATP,
    STIMECMP,
    VSTIMECMP,
    MIP,
    HVIP,
    MEPC,
    MCAUSE,
    MTVAL,
    MTVAL2,
    MTINST,
    PMPADDR0,
    PMPADDR1,
    PMPADDR2,
    PMPADDR7,
    PMPCFG0,
    SISELECT,
    HSTATUS,
    MCOUNTINHIBIT,
    MSTATUS,
];

/// CSRs that are compared when a program has ended. FCSR is last: before it, floating point is switched on.
pub const COMPARED: [u16; 48] = [
    MEDELEG, MIDELEG, MIE, MCOUNTEREN, MENVCFG, MSTATEEN0, STVEC, SSCRATCH, SCOUNTEREN, SENVCFG,
    SSTATEEN0, SEPC, SCAUSE, STVAL, SATP, HEDELEG, HIDELEG, HVIP, HCOUNTEREN, HENVCFG, HSTATEEN0,
    HGEIE, HTVAL, HTINST, HGATP, HVICTL, VSSTATUS, VSTVEC, VSSCRATCH, VSEPC, VSCAUSE, VSTVAL,
    VSATP, STIMECMP, VSTIMECMP, PMPADDR0, PMPADDR1, PMPCFG0, MIP, SIE, SIP, VSIE, VSIP, HIP,
    SSTATUS, MSTATUS, HSTATUS, FCSR,
];

/// CSRs in a record of a trap to M-mode, besides the order of traps.
pub const RECORDED: [u16; 18] = [
    MCAUSE, MEPC, MTVAL, MTVAL2, MTINST, MSTATUS, MIP, HSTATUS, SEPC, SCAUSE, STVAL, HTVAL, HTINST,
    VSEPC, VSCAUSE, VSTVAL, VSSTATUS, MIE,
];
