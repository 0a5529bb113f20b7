//! CSRs of S-mode: privileged specification, "Supervisor CSRs"; "Sstc", "Sscofpmf", "Smstateen"; AIA.

use super::legal::{EPC, SELECT, WORD, vector};
use crate::base::InterruptFile;
use crate::csr::Csrs;
use crate::csr::field::{interrupt, stateen, status};
use crate::csr::number as csr;
use crate::csr::warl::{environment, replace, space, with_sd, without_interrupts};
use crate::zicsr::row::{Guard, Read, Row, Then, Write, register};

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::SSTATUS,
        "sstatus",
        Read::State(|csrs| {
            let fields = status::SUPERVISOR | status::OPTIONAL;
            with_sd(csrs.mstatus & fields | status::UXL_64)
        }),
        Write::Hart(|hart, _, value, _| {
            let fields = hart.supervisor_status_fields();
            let mstatus = &mut hart.csrs.mstatus;
            replace(mstatus, fields, value);
            // MDT is not in sstatus: MIE has been cleared with it.
            *mstatus = without_interrupts(*mstatus);
            Ok(())
        }),
    )
    .guest(csr::VSSTATUS)
    .then(Then::Status),
    Row::new(
        csr::SIE,
        "sie",
        Read::State(|csrs| {
            let delivered = csrs.delivered_enabled & csrs.mvien & !csrs.mideleg;
            csrs.mie & csrs.mideleg & !interrupt::HYPERVISOR | delivered
        }),
        Write::State(|csrs, value| {
            replace(&mut csrs.mie, csrs.mideleg & interrupt::DELEGABLE, value);
            // As with hvien: sie's bit stands by itself, and sip's is mvip's (AIA, "Virtual interrupts for supervisor
            // level").
            replace(
                &mut csrs.delivered_enabled,
                csrs.mvien & !csrs.mideleg,
                value,
            );
        }),
    )
    .guard(Guard::VirtualInterrupts)
    .guest(csr::VSIE)
    .then(Then::Interrupts),
    register!(STVEC, "stvec", stvec, legal vector).guest(csr::VSTVEC),
    register!(SCOUNTEREN, "scounteren", scounteren, WORD),
    Row::new(
        csr::SENVCFG,
        "senvcfg",
        Read::Hart(|hart, _, _| Ok(hart.csrs.senvcfg & hart.user_environment_fields())),
        Write::Hart(|hart, _, value, _| {
            let mask = hart.user_environment_fields();
            let old = hart.csrs.senvcfg;
            hart.csrs.senvcfg = environment(old, value, mask) | old & !mask;
            Ok(())
        }),
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
            let csrs = &hart.csrs;
            let delivered = csrs.delivered & csrs.mvien & !csrs.mideleg;
            Ok(hart.pending(system) & csrs.mideleg & !interrupt::HYPERVISOR | delivered)
        }),
        Write::State(|csrs, value| {
            let mask = csrs.mideleg & (interrupt::SSI | interrupt::LCOFI);
            replace(&mut csrs.mip, mask, value);
            replace(&mut csrs.delivered, csrs.mvien & !csrs.mideleg, value);
        }),
    )
    .guard(Guard::VirtualInterrupts)
    .guest(csr::VSIP)
    .basis(|csrs: &Csrs| csrs.mip & csrs.mideleg | csrs.delivered & csrs.mvien & !csrs.mideleg)
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
        Read::Hart(|hart, _, system| hart.read_supervisor_indirect(1, system)),
        Write::Hart(|hart, _, value, system| hart.write_supervisor_indirect(1, value, system)),
    )
    .guard(Guard::State(stateen::CSRIND))
    .guest(csr::VSIREG)
    .then(Then::File),
    Row::new(
        csr::SIREG2,
        "sireg2",
        Read::Hart(|hart, index, system| hart.read_supervisor_indirect(2 + index, system)),
        Write::Hart(|hart, index, value, system| {
            hart.write_supervisor_indirect(2 + index, value, system)
        }),
    )
    .to(csr::SIREG3)
    .option(|options| options.counter_delegation)
    .guard(Guard::State(stateen::CSRIND))
    .guest(csr::VSIREG2),
    Row::new(
        csr::SIREG4,
        "sireg4",
        Read::Hart(|hart, index, system| hart.read_supervisor_indirect(4 + index, system)),
        Write::Hart(|hart, index, value, system| {
            hart.write_supervisor_indirect(4 + index, value, system)
        }),
    )
    .to(csr::SIREG6)
    .option(|options| options.counter_delegation)
    .guard(Guard::State(stateen::CSRIND))
    .guest(csr::VSIREG4),
    Row::new(
        csr::SCOUNTINHIBIT,
        "scountinhibit",
        Read::State(|csrs| csrs.mcountinhibit & csrs.mcounteren),
        Write::Hart(|hart, _, value, _| {
            let mut inhibit = hart.csrs.mcountinhibit;
            replace(&mut inhibit, hart.csrs.mcounteren, value);
            hart.write_inhibit(inhibit);
            Ok(())
        }),
    )
    .option(|options| options.counter_delegation)
    .guard(Guard::Delegation),
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
    )
    .guard(Guard::Overflows),
    Row::read_only(
        csr::STOPI,
        "stopi",
        Read::Hart(|hart, _, system| Ok(hart.supervisor_top(hart.pending(system)))),
    )
    .guard(Guard::State(stateen::AIA))
    .guest(csr::VSTOPI),
];
