//! CSRs of M-mode: privileged specification, "Machine-Level CSRs", "Physical Memory Protection CSRs"; "Smstateen", "Smmpm"; AIA.

use super::legal::{EPC, SELECT, WORD, vector};
use crate::base::InterruptFile;
use crate::csr::field::{self, envcfg, interrupt, stateen, status};
use crate::csr::number as csr;
use crate::csr::warl::{environment, machine_status, replace, security, with_sd};
use crate::csr::{Csrs, MISA, MISA_V};
use crate::extension::Options;
use crate::zicsr::row::{Read, Row, Then, Write, register};

/// Exceptions that medeleg can delegate: all but ecall from M-mode and the reserved ones.
const MEDELEG: u64 = 0x00f4_b7ff;

/// The row of the pmpcfg register with this number.
macro_rules! protection {
    ($number:ident, $name:literal, $register:literal) => {
        Row::new(
            csr::$number,
            $name,
            Read::State(|csrs| csrs.pmp.configuration($register)),
            Write::State(|csrs, value| csrs.pmp.set_configuration($register, value)),
        )
        .then(Then::Protection)
    };
}

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::MSTATUS,
        "mstatus",
        Read::State(|csrs| with_sd(csrs.mstatus | status::XL_64)),
        Write::Hart(|hart, _, value, _| {
            let mask = hart.machine_status_fields();
            hart.csrs.mstatus = machine_status(hart.csrs.mstatus, value, mask);
            Ok(())
        }),
    )
    .then(Then::Status),
    Row::read_only(
        csr::MISA,
        "misa",
        Read::Hart(|hart, _, _| {
            Ok(if hart.vector.exists() {
                MISA | MISA_V
            } else {
                MISA
            })
        }),
    ),
    register!(MEDELEG, "medeleg", medeleg, MEDELEG),
    Row::new(
        csr::MIDELEG,
        "mideleg",
        Read::State(|csrs| csrs.mideleg),
        Write::State(|csrs, value| {
            csrs.mideleg = value & interrupt::DELEGABLE | interrupt::HYPERVISOR;
        }),
    )
    .then(Then::Interrupts),
    register!(MIE, "mie", mie, interrupt::ALL).then(Then::Interrupts),
    register!(MTVEC, "mtvec", mtvec, legal vector),
    register!(MCOUNTEREN, "mcounteren", mcounteren, WORD),
    Row::new(
        csr::MVIEN,
        "mvien",
        Read::State(|csrs| csrs.mvien),
        Write::Hart(|hart, _, value, _| {
            hart.csrs.mvien = value & hart.deliverable();
            Ok(())
        }),
    )
    .then(Then::Interrupts),
    Row::new(
        csr::MVIP,
        "mvip",
        Read::State(|csrs| csrs.mip & interrupt::SUPERVISOR | csrs.delivered),
        Write::Hart(|hart, _, value, _| {
            write_pending(&mut hart.csrs, value, 0);
            hart.csrs.delivered = value & hart.deliverable();
            Ok(())
        }),
    )
    .basis(|csrs| csrs.mip & !interrupt::LCOFI | csrs.delivered)
    .then(Then::Interrupts),
    Row::new(
        csr::MENVCFG,
        "menvcfg",
        Read::State(|csrs| csrs.menvcfg),
        Write::Hart(|hart, _, value, _| {
            let mask = hart.environment_fields();
            let csrs = &mut hart.csrs;
            csrs.menvcfg = environment(csrs.menvcfg, value, mask);
            csrs.henvcfg &= !envcfg::GATED | csrs.menvcfg;
            hart.clear_disabled_traps();
            Ok(())
        }),
    )
    .then(Then::Environment),
    Row::new(
        csr::MSTATEEN0,
        "mstateen0",
        Read::Array(|csrs, bank| csrs.mstateen.get(bank).copied().unwrap_or(0)),
        Write::Array(|csrs, bank, value| {
            let mask = if bank == 0 {
                stateen::WRITABLE0
            } else {
                stateen::SE
            };
            if let Some(register) = csrs.mstateen.get_mut(bank) {
                *register = value & mask;
            }
        }),
    )
    .to(csr::MSTATEEN3),
    Row::new(
        csr::MCOUNTINHIBIT,
        "mcountinhibit",
        Read::State(|csrs| csrs.mcountinhibit),
        Write::Hart(|hart, _, value, _| {
            hart.write_inhibit(value);
            Ok(())
        }),
    ),
    Row::new(
        csr::MCYCLECFG,
        "mcyclecfg",
        Read::State(|csrs| csrs.mcyclecfg),
        Write::Hart(|hart, _, value, _| {
            hart.write_filter(0, value);
            Ok(())
        }),
    )
    .option(|options| options.counter_filters),
    Row::new(
        csr::MINSTRETCFG,
        "minstretcfg",
        Read::State(|csrs| csrs.minstretcfg),
        Write::Hart(|hart, _, value, _| {
            hart.write_filter(2, value);
            Ok(())
        }),
    )
    .option(|options| options.counter_filters),
    Row::new(
        csr::MHPMEVENT3,
        "mhpmevent3",
        Read::Array(|csrs, index| csrs.mhpmevent.get(index).copied().unwrap_or(0)),
        Write::Hart(|hart, index, value, _| {
            hart.write_event(usize::from(index), value);
            Ok(())
        }),
    )
    .to(csr::MHPMEVENT31),
    register!(MSCRATCH, "mscratch", mscratch),
    register!(MEPC, "mepc", mepc, EPC),
    register!(MCAUSE, "mcause", mcause),
    register!(MTVAL, "mtval", mtval),
    Row::new(
        csr::MIP,
        "mip",
        Read::Hart(|hart, _, system| Ok(hart.pending(system))),
        Write::State(|csrs, value| write_pending(csrs, value, interrupt::VSSI | interrupt::LCOFI)),
    )
    .basis(|csrs| csrs.mip)
    .then(Then::Interrupts),
    register!(MTINST, "mtinst", mtinst, WORD),
    register!(MTVAL2, "mtval2", mtval2),
    register!(MISELECT, "miselect", miselect, SELECT),
    Row::new(
        csr::MIREG,
        "mireg",
        Read::Hart(|hart, _, system| {
            hart.read_indirect(InterruptFile::Machine, hart.csrs.miselect, system)
        }),
        Write::Hart(|hart, _, value, system| {
            let select = hart.csrs.miselect;
            hart.write_indirect(InterruptFile::Machine, select, value, system)
        }),
    )
    .then(Then::File),
    Row::new(
        csr::MTOPEI,
        "mtopei",
        Read::Hart(|hart, _, system| hart.read_top(InterruptFile::Machine, system)),
        Write::Hart(|hart, _, _, system| hart.claim_top(InterruptFile::Machine, system)),
    )
    .then(Then::File),
    Row::new(
        csr::MSECCFG,
        "mseccfg",
        Read::State(|csrs| csrs.mseccfg),
        Write::Hart(|hart, _, value, _| {
            let mask = security_fields(&hart.extension.options);
            hart.csrs.mseccfg = security(hart.csrs.mseccfg, value, mask);
            Ok(())
        }),
    )
    .then(Then::Masking),
    // RV64 has the even registers alone.
    protection!(PMPCFG0, "pmpcfg0", 0),
    protection!(PMPCFG2, "pmpcfg2", 2),
    protection!(PMPCFG4, "pmpcfg4", 4).of_many_pmp_entries(),
    protection!(PMPCFG6, "pmpcfg6", 6).of_many_pmp_entries(),
    protection!(PMPCFG8, "pmpcfg8", 8).of_many_pmp_entries(),
    protection!(PMPCFG10, "pmpcfg10", 10).of_many_pmp_entries(),
    protection!(PMPCFG12, "pmpcfg12", 12).of_many_pmp_entries(),
    protection!(PMPCFG14, "pmpcfg14", 14).of_many_pmp_entries(),
    Row::new(
        csr::PMPADDR0,
        "pmpaddr0",
        Read::Array(|csrs, entry| csrs.pmp.address(entry)),
        Write::Array(|csrs, entry, value| csrs.pmp.set_address(entry, value)),
    )
    .to(csr::PMPADDR15)
    .then(Then::Protection),
    Row::new(
        csr::PMPADDR16,
        "pmpaddr16",
        Read::Array(|csrs, above| csrs.pmp.address(16 + above)),
        Write::Array(|csrs, above, value| csrs.pmp.set_address(16 + above, value)),
    )
    .to(csr::PMPADDR63)
    .of_many_pmp_entries()
    .then(Then::Protection),
    Row::new(
        csr::MCYCLE,
        "mcycle",
        Read::Hart(|hart, _, _| Ok(hart.counter(0))),
        Write::Hart(|hart, _, value, _| {
            hart.write_counter(0, value);
            Ok(())
        }),
    ),
    Row::new(
        csr::MINSTRET,
        "minstret",
        Read::Hart(|hart, _, _| Ok(hart.counter(2))),
        Write::Hart(|hart, _, value, _| {
            hart.write_counter(2, value);
            Ok(())
        }),
    ),
    Row::new(
        csr::MHPMCOUNTER3,
        "mhpmcounter3",
        Read::Hart(|hart, index, _| Ok(hart.counter(3 + index))),
        Write::Hart(|hart, index, value, _| {
            hart.write_counter(3 + index, value);
            Ok(())
        }),
    )
    .to(csr::MHPMCOUNTER31),
    Row::zero(csr::MVENDORID, "mvendorid"),
    Row::zero(csr::MARCHID, "marchid"),
    Row::zero(csr::MIMPID, "mimpid"),
    Row::read_only(
        csr::MHARTID,
        "mhartid",
        Read::Hart(|hart, _, _| Ok(u64::from(hart.id.0))),
    ),
    Row::zero(csr::MCONFIGPTR, "mconfigptr"),
    Row::read_only(
        csr::MTOPI,
        "mtopi",
        Read::Hart(|hart, _, system| Ok(hart.machine_top(hart.pending(system)))),
    ),
];

/// Fields of mseccfg that exist.
const fn security_fields(options: &Options) -> u64 {
    let seeds = field::security::SSEED | field::security::USEED;
    let pads = if options.landing_pads {
        field::security::MLPE
    } else {
        0
    };
    envcfg::PMM | pads | if options.entropy { seeds } else { 0 }
}

/// Bits that software can set in mip: STIP unless stimecmp drives it, and `more`.
fn write_pending(csrs: &mut Csrs, value: u64, more: u64) {
    let timer = if csrs.menvcfg & envcfg::STCE == 0 {
        interrupt::STI
    } else {
        0
    };
    let mask = interrupt::SSI | interrupt::SEI | timer | more;
    replace(&mut csrs.mip, mask, value);
}
