//! CSRs of S-mode: privileged specification, "Supervisor CSRs"; "Sstc", "Sscofpmf", "Smstateen"; AIA.

use super::legal::{EPC, SELECT, WORD, vector};
use crate::base::InterruptFile;
use crate::csr::Csrs;
use crate::csr::field::{envcfg, interrupt, stateen, status};
use crate::csr::number as csr;
use crate::csr::warl::{environment, replace, space, with_sd};
use crate::zicsr::row::{Guard, Read, Row, Then, Write, register};

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::SSTATUS,
        "sstatus",
        Read::State(|csrs| with_sd(csrs.mstatus & status::SUPERVISOR | status::UXL_64)),
        Write::State(|csrs, value| replace(&mut csrs.mstatus, status::SUPERVISOR, value)),
    )
    .guest(csr::VSSTATUS)
    .then(Then::Status),
    Row::new(
        csr::SIE,
        "sie",
        Read::State(|csrs| csrs.mie & csrs.mideleg & !interrupt::HYPERVISOR),
        Write::State(|csrs, value| {
            replace(&mut csrs.mie, csrs.mideleg & interrupt::DELEGABLE, value);
        }),
    )
    .guard(Guard::VirtualInterrupts)
    .guest(csr::VSIE)
    .then(Then::Interrupts),
    register!(STVEC, "stvec", stvec, legal vector).guest(csr::VSTVEC),
    register!(SCOUNTEREN, "scounteren", scounteren, WORD),
    register!(
        SENVCFG,
        "senvcfg",
        senvcfg,
        legal | old,
        value | environment(old, value, envcfg::SUPERVISOR)
    )
    .guard(Guard::State(stateen::ENVCFG))
    .then(Then::Masking),
    // Nothing below HS-mode is guarded by sstateen: no bit exists.
    Row::zero(csr::SSTATEEN0, "sstateen0")
        .to(csr::SSTATEEN3)
        .guard(Guard::StateBank),
    register!(SSCRATCH, "sscratch", sscratch).guest(csr::VSSCRATCH),
    register!(SEPC, "sepc", sepc, EPC).guest(csr::VSEPC),
    register!(SCAUSE, "scause", scause).guest(csr::VSCAUSE),
    register!(STVAL, "stval", stval).guest(csr::VSTVAL),
    Row::new(
        csr::SIP,
        "sip",
        Read::Hart(|hart, _, system| {
            Ok(hart.pending(system) & hart.csrs.mideleg & !interrupt::HYPERVISOR)
        }),
        Write::State(|csrs, value| {
            let mask = csrs.mideleg & (interrupt::SSI | interrupt::LCOFI);
            replace(&mut csrs.mip, mask, value);
        }),
    )
    .guard(Guard::VirtualInterrupts)
    .guest(csr::VSIP)
    .basis(|csrs: &Csrs| csrs.mip & csrs.mideleg)
    .then(Then::Interrupts),
    register!(STIMECMP, "stimecmp", stimecmp)
        .guard(Guard::Timer)
        .guest(csr::VSTIMECMP)
        .then(Then::Timers),
    register!(SISELECT, "siselect", siselect, SELECT)
        .guard(Guard::State(stateen::CSRIND))
        .guest(csr::VSISELECT),
    Row::new(
        csr::SIREG,
        "sireg",
        Read::Hart(|hart, _, system| {
            hart.read_indirect(InterruptFile::Supervisor, hart.csrs.siselect, system)
        }),
        Write::Hart(|hart, _, value, system| {
            let select = hart.csrs.siselect;
            hart.write_indirect(InterruptFile::Supervisor, select, value, system)
        }),
    )
    .guard(Guard::State(stateen::CSRIND))
    .guest(csr::VSIREG)
    .then(Then::File),
    Row::new(
        csr::STOPEI,
        "stopei",
        Read::Hart(|hart, _, system| hart.read_top(InterruptFile::Supervisor, system)),
        Write::Hart(|hart, _, _, system| hart.claim_top(InterruptFile::Supervisor, system)),
    )
    .guard(Guard::State(stateen::IMSIC))
    .guest(csr::VSTOPEI)
    .then(Then::File),
    Row::new(
        csr::SATP,
        "satp",
        Read::State(|csrs| csrs.satp),
        Write::Hart(|hart, _, value, _| {
            hart.csrs.satp = space(hart.csrs.satp, value, hart.extension.paging);
            Ok(())
        }),
    )
    .guard(Guard::Translation)
    .guest(csr::VSATP)
    .then(Then::Translation),
    Row::read_only(
        csr::SCOUNTOVF,
        "scountovf",
        Read::Hart(|hart, _, _| Ok(hart.visible_overflows())),
    ),
    Row::read_only(
        csr::STOPI,
        "stopi",
        Read::Hart(|hart, _, system| Ok(hart.supervisor_top(hart.pending(system)))),
    )
    .guard(Guard::State(stateen::AIA))
    .guest(csr::VSTOPI),
];
