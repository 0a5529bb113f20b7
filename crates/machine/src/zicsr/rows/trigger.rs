//! CSRs of the trigger module: RISC-V Debug Specification 1.0, "Trigger Module Registers".

use crate::csr::TRIGGER_INFO;
use crate::csr::number as csr;
use crate::zicsr::row::{Read, Row, Then, Write};

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::TSELECT,
        "tselect",
        Read::State(|csrs| csrs.triggers.selected()),
        Write::State(|csrs, value| csrs.triggers.select(value)),
    )
    .option(|options| options.triggers),
    Row::new(
        csr::TDATA1,
        "tdata1",
        Read::State(|csrs| csrs.triggers.control()),
        Write::State(|csrs, value| csrs.triggers.set_control(value)),
    )
    .option(|options| options.triggers)
    .then(Then::Triggers),
    Row::new(
        csr::TDATA2,
        "tdata2",
        Read::State(|csrs| csrs.triggers.data()),
        Write::State(|csrs, value| csrs.triggers.set_data(value)),
    )
    .option(|options| options.triggers),
    // No trigger looks at contexts or address spaces.
    Row::zero(csr::TDATA3, "tdata3").option(|options| options.triggers),
    // It can be written to, without effect.
    Row::new(
        csr::TINFO,
        "tinfo",
        Read::Constant(TRIGGER_INFO),
        Write::Ignored,
    )
    .option(|options| options.triggers),
];
