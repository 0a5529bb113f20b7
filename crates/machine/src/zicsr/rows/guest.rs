//! VS CSRs: privileged specification, "Hypervisor and Virtual Supervisor CSRs"; AIA.

use super::legal::{EPC, SELECT, vector};
use crate::base::InterruptFile;
use crate::csr::field::{interrupt, stateen, status};
use crate::csr::number as csr;
use crate::csr::warl::{replace, space, with_sd, without_interrupts};
use crate::zicsr::row::{Guard, Read, Row, Then, Write, register};

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::VSSTATUS,
        "vsstatus",
        Read::State(|csrs| with_sd(csrs.vsstatus | status::UXL_64)),
        Write::Hart(|hart, _, value, _| {
            hart.csrs.vsstatus = without_interrupts(value & hart.guest_status_fields());
            Ok(())
        }),
    )
    .then(Then::Status),
    Row::new(
        csr::VSIE,
        "vsie",
        Read::Hart(|hart, _, _| Ok(hart.virtual_enabled())),
        Write::State(|csrs, value| {
            replace(&mut csrs.mie, csrs.hideleg & interrupt::VIRTUAL, value << 1);
            // With hvien set and hideleg clear, vsie's bit stands by itself and vsip's is hvip's (AIA, "Virtual
            // interrupts for VS level").
            replace(&mut csrs.injected_enabled, csrs.hvien, value);
        }),
    )
    .then(Then::Interrupts),
    register!(VSTVEC, "vstvec", vstvec, legal vector),
    register!(VSSCRATCH, "vsscratch", vsscratch),
    register!(VSEPC, "vsepc", vsepc, EPC),
    register!(VSCAUSE, "vscause", vscause),
    register!(VSTVAL, "vstval", vstval),
    Row::new(
        csr::VSIP,
        "vsip",
        Read::Hart(|hart, _, system| Ok(hart.virtual_pending(hart.pending(system)))),
        Write::State(|csrs, value| {
            replace(&mut csrs.mip, csrs.hideleg & interrupt::VSSI, value << 1);
            replace(&mut csrs.injected, csrs.hvien, value);
        }),
    )
    .then(Then::Interrupts),
    register!(VSTIMECMP, "vstimecmp", vstimecmp)
        .guard(Guard::Timer)
        .then(Then::Timers),
    register!(VSISELECT, "vsiselect", vsiselect, SELECT).guard(Guard::State(stateen::CSRIND)),
    Row::new(
        csr::VSIREG,
        "vsireg",
        Read::Hart(|hart, _, system| hart.read_guest_indirect(1, system)),
        Write::Hart(|hart, _, value, system| hart.write_guest_indirect(1, value, system)),
    )
    .guard(Guard::State(stateen::CSRIND))
    .then(Then::File),
    Row::new(
        csr::VSIREG2,
        "vsireg2",
        Read::Hart(|hart, index, system| hart.read_guest_indirect(2 + index, system)),
        Write::Hart(|hart, index, value, system| {
            hart.write_guest_indirect(2 + index, value, system)
        }),
    )
    .to(csr::VSIREG3)
    .option(|options| options.counter_delegation)
    .guard(Guard::State(stateen::CSRIND)),
    Row::new(
        csr::VSIREG4,
        "vsireg4",
        Read::Hart(|hart, index, system| hart.read_guest_indirect(4 + index, system)),
        Write::Hart(|hart, index, value, system| {
            hart.write_guest_indirect(4 + index, value, system)
        }),
    )
    .to(csr::VSIREG6)
    .option(|options| options.counter_delegation)
    .guard(Guard::State(stateen::CSRIND)),
    Row::new(
        csr::VSTOPEI,
        "vstopei",
        Read::Hart(|hart, _, system| {
            hart.read_top(InterruptFile::Guest(hart.csrs.vgein()), system)
        }),
        Write::Hart(|hart, _, _, system| {
            hart.claim_top(InterruptFile::Guest(hart.csrs.vgein()), system)
        }),
    )
    .guard(Guard::State(stateen::IMSIC))
    .then(Then::File),
    Row::new(
        csr::VSATP,
        "vsatp",
        Read::State(|csrs| csrs.vsatp),
        Write::Hart(|hart, _, value, _| {
            hart.csrs.vsatp = space(hart.csrs.vsatp, value, hart.extension.paging);
            Ok(())
        }),
    )
    .then(Then::Translation),
    Row::read_only(
        csr::VSTOPI,
        "vstopi",
        Read::Hart(|hart, _, system| Ok(hart.virtual_top(hart.pending(system), system))),
    )
    .guard(Guard::State(stateen::AIA)),
];
