//! CSRs of HS-mode: privileged specification, "Hypervisor and Virtual Supervisor CSRs"; "Smstateen"; AIA; and those of
//! the custom extensions.

use riscv::csr::address_translation::{VMID_MAX, VMID_SHIFT};

use super::legal::WORD;
use crate::csr::Csrs;
use crate::csr::field::{envcfg, hstatus, hvictl, interrupt, stateen};
use crate::csr::number as csr;
use crate::csr::warl::{environment, guest_space, hypervisor_status, replace};
use crate::zicsr::row::{Guard, Read, Row, Then, Write, register};

/// Exceptions that hedeleg can delegate: not those that only HS-mode can handle. Software checks (18) and
/// hardware errors (19) are among them ("Hypervisor Trap Delegation Registers").
const HEDELEG: u64 = 0x000c_b1ff;

/// hgatp.VMID.
const VMID: u64 = VMID_MAX << VMID_SHIFT;

pub(in crate::zicsr) const ROWS: &[Row] = &[
    Row::new(
        csr::HSTATUS,
        "hstatus",
        Read::State(|csrs| csrs.hstatus | hstatus::VSXL_64),
        Write::Hart(|hart, _, value, system| {
            hart.csrs.hstatus = hypervisor_status(hart.csrs.hstatus, value);
            if hart.csrs.vgein() > system.guest_files() {
                // WLRL: a file that does not exist is not kept.
                hart.csrs.hstatus &= !hstatus::VGEIN;
            }
            Ok(())
        }),
    )
    .then(Then::Context),
    register!(HEDELEG, "hedeleg", hedeleg, HEDELEG),
    register!(HIDELEG, "hideleg", hideleg, interrupt::VIRTUAL).then(Then::Interrupts),
    Row::new(
        csr::HIE,
        "hie",
        Read::State(|csrs| csrs.mie & interrupt::HYPERVISOR),
        Write::State(|csrs, value| replace(&mut csrs.mie, interrupt::HYPERVISOR, value)),
    )
    .then(Then::Interrupts),
    register!(HTIMEDELTA, "htimedelta", htimedelta).then(Then::Timers),
    register!(HCOUNTEREN, "hcounteren", hcounteren, WORD),
    Row::new(
        csr::HGEIE,
        "hgeie",
        Read::State(|csrs| csrs.hgeie),
        Write::Hart(|hart, _, value, system| {
            hart.csrs.hgeie = value & system.guest_file_mask();
            Ok(())
        }),
    )
    .then(Then::Interrupts),
    register!(HVIEN, "hvien", hvien, interrupt::INJECTED)
        .guard(Guard::State(stateen::AIA))
        .then(Then::Interrupts),
    register!(HVICTL, "hvictl", hvictl, hvictl::WRITABLE)
        .guard(Guard::State(stateen::AIA))
        .then(Then::Interrupts),
    Row::new(
        csr::HENVCFG,
        "henvcfg",
        Read::State(|csrs| csrs.henvcfg),
        Write::Hart(|hart, _, value, _| {
            let mask = hart.environment_fields();
            let csrs = &mut hart.csrs;
            let mask = mask & !envcfg::CDE & (!envcfg::GATED | csrs.menvcfg);
            csrs.henvcfg = environment(csrs.henvcfg, value, mask);
            hart.clear_disabled_traps();
            Ok(())
        }),
    )
    .guard(Guard::State(stateen::ENVCFG))
    .then(Then::Environment),
    Row::new(
        csr::HSTATEEN0,
        "hstateen0",
        Read::Array(|csrs, bank| {
            state_enables(csrs.hstateen, bank) & state_enables(csrs.mstateen, bank)
        }),
        Write::Array(|csrs: &mut Csrs, bank, value| {
            let mask = state_enables(csrs.mstateen, bank);
            if let Some(register) = csrs.hstateen.get_mut(bank) {
                *register = value & mask;
            }
        }),
    )
    .to(csr::HSTATEEN3)
    .guard(Guard::StateBank),
    register!(HTVAL, "htval", htval),
    Row::new(
        csr::HIP,
        "hip",
        Read::Hart(|hart, _, system| Ok(hart.pending(system) & interrupt::HYPERVISOR)),
        Write::State(|csrs, value| replace(&mut csrs.mip, interrupt::VSSI, value)),
    )
    .basis(|csrs| csrs.mip)
    .then(Then::Interrupts),
    Row::new(
        csr::HVIP,
        "hvip",
        Read::State(|csrs| csrs.mip & interrupt::VIRTUAL | csrs.injected),
        Write::State(|csrs, value| {
            replace(&mut csrs.mip, interrupt::VIRTUAL, value);
            replace(&mut csrs.injected, interrupt::INJECTED, value);
        }),
    )
    .basis(|csrs| csrs.mip | csrs.injected)
    .then(Then::Interrupts),
    // No priority can be configured.
    Row::zero(csr::HVIPRIO1, "hviprio1")
        .to(csr::HVIPRIO2)
        .guard(Guard::State(stateen::AIA)),
    register!(HTINST, "htinst", htinst, WORD),
    Row::new(
        csr::HGATP,
        "hgatp",
        Read::State(|csrs| csrs.hgatp),
        Write::Hart(|hart, _, value, _| {
            let value = value & !VMID | value & hart.extension.vmid_bits.mask() << VMID_SHIFT;
            hart.csrs.hgatp = guest_space(hart.csrs.hgatp, value, hart.extension.paging);
            Ok(())
        }),
    )
    .guard(Guard::Translation)
    .then(Then::Translation),
    Row::read_only(
        csr::HGEIP,
        "hgeip",
        Read::Hart(|hart, _, _| Ok(hart.irq_levels.guest_external)),
    ),
    Row::new(
        csr::HPLEGAP,
        "hplegap",
        Read::Hart(|hart, _, _| Ok(hart.extension.read(csr::HPLEGAP))),
        Write::Hart(|hart, _, value, _| {
            hart.extension.write(csr::HPLEGAP, value);
            Ok(())
        }),
    )
    .custom(|present| present.pause_loop_exit),
    Row::new(
        csr::HPLEWINDOW,
        "hplewindow",
        Read::Hart(|hart, _, _| Ok(hart.extension.read(csr::HPLEWINDOW))),
        Write::Hart(|hart, _, value, _| {
            hart.extension.write(csr::HPLEWINDOW, value);
            Ok(())
        }),
    )
    .custom(|present| present.pause_loop_exit),
    Row::new(
        csr::HPURGE,
        "hpurge",
        Read::Hart(|hart, _, _| Ok(hart.extension.read(csr::HPURGE))),
        Write::Hart(|hart, _, value, _| {
            hart.extension.write(csr::HPURGE, value);
            Ok(())
        }),
    )
    .custom(|present| present.purge_mask),
    Row::new(
        csr::HLOCKHOLDER,
        "hlockholder",
        Read::Hart(|hart, _, system| {
            let lock = hart.extension.read(csr::HLOCKHOLDER);
            Ok(system.holders.holder(lock).into())
        }),
        Write::Hart(|hart, _, value, system| {
            hart.extension.write(csr::HLOCKHOLDER, value);
            hart.watch_lock(system);
            Ok(())
        }),
    )
    .custom(|present| present.lock_holder),
];

/// The bits of a register among four.
fn state_enables(banks: [u64; 4], bank: usize) -> u64 {
    banks.get(bank).copied().unwrap_or(0)
}
