//! CSR numbers, and which are set and compared.

pub use riscv::csr::number::*;

/// The name of a CSR, in small letters.
#[must_use]
pub fn name(number: u16) -> String {
    match riscv::csr::number::name(number) {
        Some(name) => name.to_lowercase(),
        None => format!("csr {number:#x}"),
    }
}

/// CSRs that the harness sets before each program, in this order.
pub const SET: [u16; 54] = [
    FCSR,
    SSP,
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
pub const COMPARED: [u16; 49] = [
    SSP, MEDELEG, MIDELEG, MIE, MCOUNTEREN, MENVCFG, MSTATEEN0, STVEC, SSCRATCH, SCOUNTEREN,
    SENVCFG, SSTATEEN0, SEPC, SCAUSE, STVAL, SATP, HEDELEG, HIDELEG, HVIP, HCOUNTEREN, HENVCFG,
    HSTATEEN0, HGEIE, HTVAL, HTINST, HGATP, HVICTL, VSSTATUS, VSTVEC, VSSCRATCH, VSEPC, VSCAUSE,
    VSTVAL, VSATP, STIMECMP, VSTIMECMP, PMPADDR0, PMPADDR1, PMPCFG0, MIP, SIE, SIP, VSIE, VSIP,
    HIP, SSTATUS, MSTATUS, HSTATUS, FCSR,
];

/// CSRs of the vector unit that are compared behind these when a program that may use it has ended.
pub const VECTOR_COMPARED: [u16; 4] = [VSTART, VCSR, VL, VTYPE];

/// CSRs in a record of a trap to M-mode, besides the order of traps.
pub const RECORDED: [u16; 18] = [
    MCAUSE, MEPC, MTVAL, MTVAL2, MTINST, MSTATUS, MIP, HSTATUS, SEPC, SCAUSE, STVAL, HTVAL, HTINST,
    VSEPC, VSCAUSE, VSTVAL, VSSTATUS, MIE,
];
