//! Which CSRs there are, who may access them, and which values they keep.
//!
//! Privileged specification, "Control and Status Registers (CSRs)" with the tables of allocated addresses, "CSR Address
//! Mapping Conventions", and of the hypervisor extension "Trap Cause Codes" (virtual instruction); Advanced Interrupt
//! Architecture, "Control and Status Registers (CSRs) Added to Harts"; Sstc, Sscofpmf, Smstateen, pointer masking, Smcntrpmf,
//! Smcdeleg, Sscsrind, Zicfiss, Zkr; Debug Specification, "Trigger Module Registers".

use super::probe::ZERO;
use super::{Mode, Outcome};
use crate::assembler::{csr, csrr};

/// Properties of a CSR number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A hart with the extensions of these programs has it.
    There,
    /// Nothing is allocated there, or it belongs to an extension that the hart has not, or to RV32 alone.
    Absent,
    /// The specification leaves it open: more PMP entries, which may be read-only zero.
    Open,
}

/// Tests whether a CSR is there.
#[must_use]
pub const fn presence(number: u16) -> Presence {
    match number {
        // ssp, seed.
        0x011 | 0x015 => Presence::There,
        // fflags, frm, fcsr; cycle, time, instret, hpmcounter3 to 31.
        0x001..=0x003 | 0xc00..=0xc1f => Presence::There,
        // sstatus, sie, stvec, scounteren, senvcfg, sstateen0 to 3.
        0x100 | 0x104..=0x106 | 0x10a | 0x10c..=0x10f => Presence::There,
        // scountinhibit.
        0x120 => Presence::There,
        // sireg2 to sireg6, vsireg2 to vsireg6 and mireg2 to mireg6.
        0x152 | 0x153 | 0x155..=0x157 => Presence::Open,
        0x252 | 0x253 | 0x255..=0x257 => Presence::Open,
        0x352 | 0x353 | 0x355..=0x357 => Presence::Open,
        // sscratch, sepc, scause, stval, sip; stimecmp; siselect, sireg, stopei; satp; scountovf; stopi.
        0x140..=0x144 | 0x14d | 0x150 | 0x151 | 0x15c | 0x180 | 0xda0 | 0xdb0 => Presence::There,
        // hstatus, hedeleg, hideleg, hie, htimedelta, hcounteren, hgeie, hvien, hvictl, henvcfg, hstateen0 to 3.
        0x600 | 0x602..=0x60a | 0x60c..=0x60f => Presence::There,
        // htval, hip, hvip, hviprio1, hviprio2, htinst, hgatp, hgeip.
        0x643..=0x647 | 0x64a | 0x680 | 0xe12 => Presence::There,
        // vsstatus, vsie, vstvec, vsscratch, vsepc, vscause, vstval, vsip, vstimecmp.
        0x200 | 0x204 | 0x205 | 0x240..=0x244 | 0x24d => Presence::There,
        // vsiselect, vsireg, vstopei, vsatp, vstopi.
        0x250 | 0x251 | 0x25c | 0x280 | 0xeb0 => Presence::There,
        // mvendorid, marchid, mimpid, mhartid, mconfigptr; mtopi.
        0xf11..=0xf15 | 0xfb0 => Presence::There,
        // mstatus, misa, medeleg, mideleg, mie, mtvec, mcounteren, mvien, mvip, menvcfg, mstateen0 to 3.
        0x300..=0x306 | 0x308..=0x30a | 0x30c..=0x30f => Presence::There,
        // mcountinhibit, mcyclecfg, minstretcfg, mhpmevent3 to 31.
        0x320..=0x33f => Presence::There,
        // mscratch, mepc, mcause, mtval, mip, mtinst, mtval2; miselect, mireg, mtopei; mseccfg.
        0x340..=0x344 | 0x34a | 0x34b | 0x350 | 0x351 | 0x35c | 0x747 => Presence::There,
        // mcycle, minstret, mhpmcounter3 to 31.
        0xb00 | 0xb02..=0xb1f => Presence::There,
        // pmpcfg0, pmpcfg2 and pmpaddr0 to 15 of 16 entries; of 64 there may be more. Odd pmpcfg are RV32's.
        0x3a0 | 0x3a2 | 0x3b0..=0x3bf => Presence::There,
        0x3a4..=0x3af => {
            if number.is_multiple_of(2) {
                Presence::Open
            } else {
                Presence::Absent
            }
        }
        0x3c0..=0x3ef => Presence::Open,
        // tselect, tdata1, tdata2, tdata3, tinfo.
        0x7a0..=0x7a4 => Presence::There,
        // No trigger makes use of tcontrol or a context.
        _ => Presence::Absent,
    }
}

/// Outcome of an access with everything open that a higher mode can close; `None` where the specification leaves the outcome
/// open.
#[must_use]
pub fn expected(number: u16, write: bool, mode: Mode) -> Option<Outcome> {
    if number == SEED {
        return Some(seed(write, mode));
    }
    // What is delegated of counters is not a guest's: "Smcdeleg".
    let is_guest = matches!(mode, Mode::VirtualSupervisor | Mode::VirtualUser);
    if is_guest && (number == 0x120 || number == 0xda0 && !write) {
        return Some(Outcome::Virtual);
    }
    let exists = match presence(number) {
        Presence::There => true,
        Presence::Absent => false,
        Presence::Open => return open(number, mode),
    };
    if !exists || write && number >> 10 == 3 {
        return Some(Outcome::Illegal);
    }
    // Bits 9:8: the lowest privilege; 2 is the hypervisor's and VS-mode's registers.
    let lowest = number >> 8 & 3;
    Some(match (mode, lowest) {
        (Mode::Machine, _) | (_, 0) => Outcome::Legal,
        (Mode::Hypervisor, 1 | 2) | (Mode::VirtualSupervisor, 1) => Outcome::Legal,
        // HS-mode could make the same access.
        (Mode::VirtualSupervisor, 2) | (Mode::VirtualUser, 1 | 2) => Outcome::Virtual,
        _ => Outcome::Illegal,
    })
}

/// Outcome of an access to a register of which the specification leaves open what there is: PMP entries, and what the indirect
/// registers with higher numbers reach while the first is that of an interrupt file.
const fn open(number: u16, mode: Mode) -> Option<Outcome> {
    match (number >> 8, mode) {
        // M-mode's registers of both kinds.
        (3, Mode::Machine) => None,
        (3, _) if number < 0x3a0 => Some(Outcome::Illegal),
        (3, _) => None,
        (_, Mode::User) => Some(Outcome::Illegal),
        (_, Mode::VirtualUser) | (2, Mode::VirtualSupervisor) => Some(Outcome::Virtual),
        _ => None,
    }
}

/// Number of the entropy source.
const SEED: u16 = 0x015;

/// Outcome of an access to seed with SSEED and USEED set: "Entropy Source Access Control".
const fn seed(write: bool, mode: Mode) -> Outcome {
    match mode {
        _ if !write => Outcome::Illegal,
        Mode::Machine | Mode::Hypervisor | Mode::User => Outcome::Legal,
        Mode::VirtualSupervisor | Mode::VirtualUser => Outcome::Virtual,
    }
}

/// The same for a hart with 64 PMP entries, of which the specification leaves nothing open.
#[must_use]
pub fn expected_with_64_pmp_entries(number: u16, write: bool, mode: Mode) -> Option<Outcome> {
    match number {
        // The even pmpcfg, and pmpaddr16 to pmpaddr63: as the first of all.
        0x3a4..=0x3af if number.is_multiple_of(2) => expected(0x3a0, write, mode),
        0x3c0..=0x3ef => expected(0x3b0, write, mode),
        _ => expected(number, write, mode),
    }
}

/// The instruction that reads a CSR, or writes back what it holds (CSRRC of zero).
#[must_use]
pub const fn access(number: u16, write: bool) -> u32 {
    if write {
        csr(3, 0, number, ZERO)
    } else {
        csrr(7, number)
    }
}

/// All numbers, read and written.
pub fn accesses() -> impl Iterator<Item = (u16, bool)> {
    (0..0x1000).flat_map(|number| [(number, false), (number, true)])
}
