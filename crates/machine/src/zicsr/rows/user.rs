//! CSRs of U-mode: "F", "Zicfiss", "Zkr", "Zicntr" and "Zihpm".

use crate::base::Cycles;
use crate::csr::number as csr;
use crate::hart::Hart;
use crate::system::System;
use crate::zicsr::row::{Guard, Read, Row, Then, Write, register};

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::FFLAGS,
        "fflags",
        Read::State(|csrs| csrs.fflags),
        Write::Masked(|csrs| &mut csrs.fflags, 0x1f),
    )
    .guard(Guard::Float)
    .then(Then::FloatDirty),
    Row::new(
        csr::FRM,
        "frm",
        Read::State(|csrs| csrs.frm),
        Write::Masked(|csrs| &mut csrs.frm, 7),
    )
    .guard(Guard::Float)
    .then(Then::FloatDirty),
    Row::new(
        csr::FCSR,
        "fcsr",
        Read::State(|csrs| csrs.frm << 5 | csrs.fflags),
        Write::State(|csrs, value| (csrs.fflags, csrs.frm) = (value & 0x1f, value >> 5 & 7)),
    )
    .guard(Guard::Float)
    .then(Then::FloatDirty),
    register!(SSP, "ssp", ssp, !7)
        .option(|options| options.shadow_stacks)
        .guard(Guard::ShadowStack),
    // Every access writes. It reads the next value, and takes it away.
    Row::new(
        csr::SEED,
        "seed",
        Read::Hart(|hart, _, _| {
            let mut next = hart.extension.entropy;
            Ok(ES16 | next.next() & 0xffff)
        }),
        Write::Hart(|hart, _, _, _| {
            hart.extension.entropy.next();
            Ok(())
        }),
    )
    .option(|options| options.entropy)
    .guard(Guard::Seed),
    Row::read_only(
        csr::CYCLE,
        "cycle",
        Read::Hart(|hart, _, _| Ok(hart.counter(0))),
    )
    .guard(Guard::Counter),
    Row::read_only(
        csr::TIME,
        "time",
        Read::Hart(|hart, _, system| Ok(time(hart, system))),
    )
    .guard(Guard::Counter),
    Row::read_only(
        csr::INSTRET,
        "instret",
        Read::Hart(|hart, _, _| Ok(hart.counter(2))),
    )
    .guard(Guard::Counter),
    Row::read_only(
        csr::HPMCOUNTER3,
        "hpmcounter3",
        Read::Hart(|hart, index, _| Ok(hart.counter(3 + index))),
    )
    .to(csr::HPMCOUNTER31)
    .guard(Guard::Counter),
];

/// OPST of seed: sixteen bits of entropy are there ("Zkr", "The `seed` CSR").
const ES16: u64 = 2 << 30;

/// time, in V = 1 with htimedelta.
fn time(hart: &Hart, system: &System) -> u64 {
    let time = system.devices.time(Cycles(hart.cycles));
    let offset = if hart.mode().virtualized {
        hart.csrs.htimedelta
    } else {
        0
    };
    time.wrapping_add(offset)
}
