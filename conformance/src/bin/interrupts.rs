//! Smaia and Ssaia in the hart: AIA, chapters "Interrupts for Machine and Supervisor Levels" and
//! "Interrupts for Virtual Machines (VS Level)", and Smstateen's bits for them.

#![no_std]
#![no_main]

use conformance::csr::{self, *};
use conformance::device::{self, machine_file, set_software_interrupt, supervisor_file};
use conformance::mode::{Mode, attempt, cause, run};
use conformance::suite::{Failure, gives, raises, same};
use conformance::{suite, trap};

suite!(
    "interrupts",
    selects_hold_their_range: "miselect and vsiselect hold the values that they have to",
    iprio_is_even: "even iprio registers exist and odd ones raise illegal instruction",
    iprio_external_is_zero: "the priority numbers of external interrupts are read-only zero",
    iprio_inaccessible_in_vs: "iprio registers raise virtual instruction in VS-mode",
    unknown_select: "unknown register numbers raise illegal instruction",
    top_is_read_only: "mtopi, stopi and vstopi are read-only",
    mtopi_default_order: "mtopi follows the default order: external, software",
    mtopi_needs_enable: "mtopi is zero without a pending and enabled interrupt",
    mtopi_skips_delegated: "mtopi leaves out what is delegated",
    stopi_reports_delegated: "stopi reports delegated interrupts by the default order",
    top_ignores_global_enable: "mtopi and stopi do not depend on MIE, SIE or the mode",
    mvip_aliases: "mvip bit 1 is mip.SSIP while mvien bit 1 is zero",
    mvien_injects_software: "mvien and mvip inject a supervisor software interrupt",
    mvien_injects_external: "mvien and mvip inject a supervisor external interrupt",
    mvien_reserved: "mvien has no bits of 0 to 12 but 1 and 9",
    hvien_reserved: "hvien has no bits of 0 to 12",
    vstopi_hvip: "hvip's interrupts show in vstopi as supervisor interrupts",
    hvictl_fields: "hvictl holds its fields and no others",
    hvictl_injects: "hvictl.VTI injects the interrupt that IID and IPRIO name",
    hvictl_external: "hvictl with IID = 9 gives an external interrupt its priority",
    hvictl_traps: "hvictl.VTI makes VS-mode's sip, sie and stimecmp trap",
    vs_external_from_file: "a guest file's interrupt shows in vstopi with its identity",
    vs_interrupt_is_taken: "an interrupt in vstopi is taken in VS-mode",
    sgei_is_taken: "a supervisor guest external interrupt is reported by stopi",
    stateen_imsic: "mstateen0 bit 58 takes the interrupt files from the lower modes",
    stateen_aia: "mstateen0 bit 59 takes stopi from the lower modes",
    hstateen_imsic: "hstateen0 bit 58 takes the interrupt file from the guest",
    stateen_indirect_file: "mstateen0 bit 58 takes the interrupt files behind sireg and vsireg from the lower modes",
    stateen_indirect_priorities: "mstateen0 bit 59 takes the priorities behind sireg from S-mode",
    hstateen_indirect_file: "hstateen0 bit 58 takes the interrupt file behind sireg from the guest",
);

type Outcome = Result<(), Failure>;

const SSI: u64 = 1;
const MSI: u64 = 3;
const STI: u64 = 5;
const SEI: u64 = 9;
const MEI: u64 = 11;
const SGEI: u64 = 12;

const VTI: u64 = 1 << 30;
const VGEIN_SHIFT: u32 = 12;

const EVERYTHING: u64 = u64::MAX;
const STATE_IMSIC: u64 = 1 << 58;
const STATE_AIA: u64 = 1 << 59;

/// The interrupt in a *topi register.
fn top(access: csr::Access) -> u64 {
    access.map_or_else(|cause| cause | 1 << 63, |value| value >> 16)
}

/// Everything off and nothing delegated; all state to the lower modes.
fn quiet() {
    let _ = csr::write::<MIE>(0);
    let _ = csr::write::<MIDELEG>(0);
    let _ = csr::write::<MVIEN>(0);
    let _ = csr::write::<HIDELEG>(0);
    let _ = csr::write::<HVICTL>(0);
    let _ = csr::write::<HVIP>(0);
    let _ = csr::write::<HGEIE>(0);
    let _ = csr::write::<VSIE>(0);
    let _ = csr::clear::<HSTATUS>(0x3f << VGEIN_SHIFT);
    let _ = csr::clear::<MIP>(1 << SSI | 1 << STI | 1 << SEI);
    let _ = csr::write::<MSTATEEN0>(EVERYTHING);
    let _ = csr::write::<HSTATEEN0>(EVERYTHING);
    let _ = csr::write::<HVIPRIO1>(0);
    set_software_interrupt(0, false);
    // The priority numbers are open after reset.
    for select in (0x30..0x40).step_by(2) {
        let _ = write_indirect::<MISELECT, MIREG>(select, 0);
        let _ = write_indirect::<SISELECT, SIREG>(select, 0);
    }
    for select in [0x70, 0x80] {
        let _ = write_indirect::<MISELECT, MIREG>(select, 0);
        let _ = write_indirect::<SISELECT, SIREG>(select, 0);
    }
}

fn open_machine_file() {
    for (select, value) in [(0x80, 0), (0xc0, EVERYTHING), (0x72, 0), (0x70, 1)] {
        let _ = write_indirect::<MISELECT, MIREG>(select, value);
    }
}

fn open_supervisor_file() {
    for (select, value) in [(0x80, 0), (0xc0, EVERYTHING), (0x72, 0), (0x70, 1)] {
        let _ = write_indirect::<SISELECT, SIREG>(select, value);
    }
}

fn open_guest_file(number: u64) {
    let _ = csr::clear::<HSTATUS>(0x3f << VGEIN_SHIFT);
    let _ = csr::set::<HSTATUS>(number << VGEIN_SHIFT);
    for (select, value) in [(0x80, 0), (0xc0, EVERYTHING), (0x72, 0), (0x70, 1)] {
        let _ = write_indirect::<VSISELECT, VSIREG>(select, value);
    }
}

fn selects_hold_their_range() -> Outcome {
    for value in [0, 0x30, 0x7f, 0xff] {
        let _ = csr::write::<MISELECT>(value);
        gives("miselect", csr::read::<MISELECT>(), value)?;
        let _ = csr::write::<SISELECT>(value);
        gives("siselect", csr::read::<SISELECT>(), value)?;
    }
    for value in [0, 0xff, 0x100, 0x1ff] {
        let _ = csr::write::<VSISELECT>(value);
        gives("vsiselect", csr::read::<VSISELECT>(), value)?;
    }
    Ok(())
}

fn iprio_is_even() -> Outcome {
    quiet();
    for select in (0x30..0x40).step_by(2) {
        for read in [
            read_indirect::<MISELECT, MIREG>,
            read_indirect::<SISELECT, SIREG>,
        ] {
            same("an even register", read(select).is_ok().into(), 1)?;
            raises("an odd register", read(select + 1), ILLEGAL)?;
        }
    }
    Ok(())
}

fn iprio_external_is_zero() -> Outcome {
    quiet();
    // Bytes of iprio2: interrupts 8 to 15.
    let _ = write_indirect::<MISELECT, MIREG>(0x32, EVERYTHING);
    let machine = read_indirect::<MISELECT, MIREG>(0x32).unwrap_or(EVERYTHING);
    let _ = csr::write::<MIREG>(0);
    same(
        "machine external interrupts",
        machine >> (8 * (MEI - 8)) & 0xff,
        0,
    )?;
    let _ = write_indirect::<SISELECT, SIREG>(0x32, EVERYTHING);
    let supervisor = read_indirect::<SISELECT, SIREG>(0x32).unwrap_or(EVERYTHING);
    let _ = csr::write::<SIREG>(0);
    same(
        "supervisor external interrupts",
        supervisor >> (8 * (SEI - 8)) & 0xff,
        0,
    )
}

extern "C" fn read_iprio() -> u64 {
    cause(read_indirect::<SISELECT, SIREG>(0x30))
}

fn iprio_inaccessible_in_vs() -> Outcome {
    quiet();
    same(
        "in S-mode",
        attempt(Mode::Supervisor, read_iprio).unwrap_or(0),
        0,
    )?;
    for guest in [0, 1] {
        open_guest_file(guest);
        let found = attempt(Mode::VirtualSupervisor, read_iprio);
        same("in VS-mode", found.unwrap_or(0), VIRTUAL)?;
    }
    Ok(())
}

fn unknown_select() -> Outcome {
    quiet();
    for select in [0, 0x2f, 0x40, 0x6f] {
        raises("mireg", read_indirect::<MISELECT, MIREG>(select), ILLEGAL)?;
        raises("sireg", read_indirect::<SISELECT, SIREG>(select), ILLEGAL)?;
    }
    Ok(())
}

fn top_is_read_only() -> Outcome {
    raises("mtopi", csr::write::<MTOPI>(0), ILLEGAL)?;
    raises("stopi", csr::write::<STOPI>(0), ILLEGAL)?;
    raises("vstopi", csr::write::<VSTOPI>(0), ILLEGAL)
}

fn mtopi_default_order() -> Outcome {
    quiet();
    let _ = csr::write::<MIE>(1 << MEI | 1 << MSI | 1 << SSI | 1 << SEI);
    let _ = csr::set::<MIP>(1 << SSI);
    same("with SSI", top(csr::read::<MTOPI>()), SSI)?;
    open_supervisor_file();
    device::write(supervisor_file(0, 0), 1);
    same("with SEI", top(csr::read::<MTOPI>()), SEI)?;
    set_software_interrupt(0, true);
    same("with MSI", top(csr::read::<MTOPI>()), MSI)?;
    open_machine_file();
    device::write(machine_file(0), 1);
    let found = top(csr::read::<MTOPI>());
    quiet();
    same("with MEI", found, MEI)
}

fn mtopi_needs_enable() -> Outcome {
    quiet();
    set_software_interrupt(0, true);
    gives("pending and not enabled", csr::read::<MTOPI>(), 0)?;
    let _ = csr::write::<MIE>(1 << MSI);
    same("pending and enabled", top(csr::read::<MTOPI>()), MSI)?;
    set_software_interrupt(0, false);
    gives("enabled and not pending", csr::read::<MTOPI>(), 0)
}

fn mtopi_skips_delegated() -> Outcome {
    quiet();
    let _ = csr::write::<MIE>(1 << SSI);
    let _ = csr::set::<MIP>(1 << SSI);
    same("not delegated", top(csr::read::<MTOPI>()), SSI)?;
    gives("stopi", csr::read::<STOPI>(), 0)?;
    let _ = csr::write::<MIDELEG>(1 << SSI);
    gives("delegated", csr::read::<MTOPI>(), 0)?;
    let found = top(csr::read::<STOPI>());
    quiet();
    same("stopi", found, SSI)
}

fn stopi_reports_delegated() -> Outcome {
    quiet();
    let all = 1 << SSI | 1 << SEI;
    let _ = csr::write::<MIDELEG>(all);
    let _ = csr::write::<SIE>(all);
    let _ = csr::set::<SIP>(1 << SSI);
    same("with SSI", top(csr::read::<STOPI>()), SSI)?;
    open_supervisor_file();
    device::write(supervisor_file(0, 0), 9);
    let found = top(csr::read::<STOPI>());
    quiet();
    same("with SEI", found, SEI)
}

extern "C" fn read_stopi() -> u64 {
    csr::read::<STOPI>().unwrap_or(EVERYTHING)
}

fn top_ignores_global_enable() -> Outcome {
    quiet();
    let _ = csr::write::<MIDELEG>(1 << SSI);
    let _ = csr::write::<SIE>(1 << SSI);
    let _ = csr::set::<SIP>(1 << SSI);
    let _ = csr::clear::<MSTATUS>(0xa);
    same("in M-mode", top(csr::read::<STOPI>()), SSI)?;
    // With SIE = 0 in S-mode the interrupt stays pending.
    let found = run(Mode::Supervisor, read_stopi) >> 16;
    quiet();
    same("in S-mode", found, SSI)
}

fn mvip_aliases() -> Outcome {
    quiet();
    let _ = csr::set::<MVIP>(1 << SSI);
    same(
        "mip.SSIP",
        csr::read::<MIP>().unwrap_or(0) & 1 << SSI,
        1 << SSI,
    )?;
    let _ = csr::clear::<MIP>(1 << SSI);
    same("mvip bit 1", csr::read::<MVIP>().unwrap_or(0) & 1 << SSI, 0)
}

/// Injects an interrupt by mvien and mvip with mideleg zero.
fn inject(interrupt: u64) -> Outcome {
    quiet();
    let bit = 1 << interrupt;
    let _ = csr::write::<MVIEN>(bit);
    if csr::read::<MVIEN>().unwrap_or(0) & bit == 0 {
        // The bit may be read-only zero.
        return Ok(());
    }
    let _ = csr::clear::<MVIP>(bit);
    let _ = csr::set::<SIE>(bit);
    same("sie", csr::read::<SIE>().unwrap_or(0) & bit, bit)?;
    same("sip before", csr::read::<SIP>().unwrap_or(0) & bit, 0)?;
    let _ = csr::set::<MVIP>(bit);
    same("sip", csr::read::<SIP>().unwrap_or(0) & bit, bit)?;
    same("mip", csr::read::<MIP>().unwrap_or(0) & bit, 0)?;
    gives("mtopi", csr::read::<MTOPI>(), 0)?;
    let found = top(csr::read::<STOPI>());
    let _ = csr::clear::<MVIP>(bit);
    quiet();
    same("stopi", found, interrupt)
}

fn mvien_injects_software() -> Outcome {
    inject(SSI)
}

fn mvien_injects_external() -> Outcome {
    inject(SEI)
}

fn mvien_reserved() -> Outcome {
    quiet();
    let _ = csr::write::<MVIEN>(EVERYTHING);
    let found = csr::read::<MVIEN>();
    quiet();
    same(
        "bits 12 to 0 but 1 and 9",
        found.unwrap_or(EVERYTHING) & 0x1dfd,
        0,
    )
}

fn hvien_reserved() -> Outcome {
    let _ = csr::write::<HVIEN>(EVERYTHING);
    let found = csr::read::<HVIEN>();
    let _ = csr::write::<HVIEN>(0);
    same("bits 12 to 0", found.unwrap_or(EVERYTHING) & 0x1fff, 0)
}

fn vstopi_hvip() -> Outcome {
    quiet();
    // VSSIP, VSTIP and VSEIP are one above the supervisor's.
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(0x222);
    for (bit, interrupt) in [(6, STI), (2, SSI), (10, SEI)] {
        let _ = csr::set::<HVIP>(1 << bit);
        same("vstopi", top(csr::read::<VSTOPI>()), interrupt)?;
        gives("stopi", csr::read::<STOPI>(), 0)?;
    }
    quiet();
    gives("with nothing pending", csr::read::<VSTOPI>(), 0)
}

fn hvictl_fields() -> Outcome {
    quiet();
    let _ = csr::write::<HVICTL>(EVERYTHING);
    let found = csr::read::<HVICTL>().unwrap_or(0);
    let _ = csr::write::<HVICTL>(0);
    // At least six bits of IID.
    let fields = VTI | 0x3f << 16 | 1 << 9 | 1 << 8 | 0xff;
    same("defined fields", found & fields, fields)?;
    same("reserved bits", found & !(fields | 0xfff << 16), 0)
}

fn hvictl_injects() -> Outcome {
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    for (iid, priority) in [(13, 7), (SSI, 200), (STI, 1)] {
        let _ = csr::write::<HVICTL>(VTI | iid << 16 | 1 << 8 | priority);
        gives("vstopi", csr::read::<VSTOPI>(), iid << 16 | priority)?;
    }
    // IPRIOM = 0: the priority shows as 1.
    let _ = csr::write::<HVICTL>(VTI | 13 << 16 | 77);
    gives("vstopi without IPRIOM", csr::read::<VSTOPI>(), 13 << 16 | 1)?;
    // VTI hides what vsip and vsie have, and IID = 9 is no interrupt.
    let _ = csr::write::<VSIE>(0x222);
    let _ = csr::write::<HVIP>(1 << 2);
    let _ = csr::write::<HVICTL>(VTI | SEI << 16);
    let found = csr::read::<VSTOPI>();
    quiet();
    gives("vstopi with IID = 9", found, 0)
}

fn hvictl_external() -> Outcome {
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(0x222);
    let _ = csr::write::<HVIP>(1 << 10);
    let _ = csr::write::<HVICTL>(SEI << 16 | 1 << 8 | 42);
    gives("with a priority", csr::read::<VSTOPI>(), SEI << 16 | 42)?;
    // Without one it is 256, which shows as 255.
    let _ = csr::write::<HVICTL>(SEI << 16 | 1 << 8);
    let found = csr::read::<VSTOPI>();
    quiet();
    gives("without a priority", found, SEI << 16 | 255)
}

extern "C" fn read_sip() -> u64 {
    cause(csr::read::<SIP>())
}

extern "C" fn write_sie() -> u64 {
    cause(csr::write::<SIE>(0))
}

extern "C" fn write_stimecmp() -> u64 {
    cause(csr::write::<STIMECMP>(EVERYTHING))
}

fn hvictl_traps() -> Outcome {
    quiet();
    // stimecmp of the guest, where there is Sstc.
    let _ = csr::set::<MENVCFG>(1 << 63);
    let henvcfg_set = {
        const HENVCFG: usize = 0x60a;
        csr::set::<HENVCFG>(1 << 63)
    };
    const MCOUNTEREN: usize = 0x306;
    const HCOUNTEREN: usize = 0x606;
    let _ = csr::set::<MCOUNTEREN>(2);
    let _ = csr::set::<HCOUNTEREN>(2);
    for (what, function) in [
        ("sip", read_sip as extern "C" fn() -> u64),
        ("sie", write_sie),
        ("stimecmp", write_stimecmp),
    ] {
        if what == "stimecmp" && henvcfg_set.is_err() {
            continue;
        }
        let _ = csr::write::<HVICTL>(0);
        same(
            what,
            attempt(Mode::VirtualSupervisor, function).unwrap_or(0),
            0,
        )?;
        let _ = csr::write::<HVICTL>(VTI | SEI << 16);
        same(
            what,
            attempt(Mode::VirtualSupervisor, function).unwrap_or(0),
            VIRTUAL,
        )?;
    }
    quiet();
    Ok(())
}

fn vs_external_from_file() -> Outcome {
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(0x222);
    open_guest_file(4);
    device::write(supervisor_file(0, 4), 44);
    same("vsip.SEIP", csr::read::<VSIP>().unwrap_or(0) >> SEI & 1, 1)?;
    let _ = csr::write::<HVICTL>(1 << 8);
    gives("vstopi", csr::read::<VSTOPI>(), SEI << 16 | 44)?;
    gives("the claim", csr::swap::<VSTOPEI>(0), 44 << 16 | 44)?;
    let found = csr::read::<VSTOPI>();
    quiet();
    gives("vstopi after the claim", found, 0)
}

extern "C" fn wait_for_interrupt() -> u64 {
    // vstvec leads to the trap below, which leaves with vscause.
    (0..1000).for_each(|_| core::hint::spin_loop());
    0
}

extern "C" fn report_cause() -> u64 {
    const SCAUSE: usize = 0x142;
    csr::read::<SCAUSE>().unwrap_or(0)
}

core::arch::global_asm!(
    r#"
    .text
    .balign 4
    .globl leave_with_cause
leave_with_cause:
    call {report}
    li a7, 0x6c656176
    ecall
    "#,
    report = sym report_cause
);

unsafe extern "C" {
    fn leave_with_cause();
}

fn vs_interrupt_is_taken() -> Outcome {
    const VSSTATUS: usize = 0x200;
    const VSTVEC: usize = 0x205;
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(1 << SEI);
    let _ = csr::write::<VSTVEC>(leave_with_cause as *const () as u64);
    let _ = csr::write::<VSSTATUS>(2);
    open_guest_file(2);
    device::write(supervisor_file(0, 2), 5);
    trap::clear();
    let taken = run(Mode::VirtualSupervisor, wait_for_interrupt);
    let _ = csr::write::<VSSTATUS>(0);
    quiet();
    same("vscause", taken, 1 << 63 | SEI)
}

fn sgei_is_taken() -> Outcome {
    quiet();
    let _ = csr::set::<HIE>(1 << SGEI);
    open_guest_file(3);
    let _ = csr::write::<HGEIE>(1 << 3);
    device::write(supervisor_file(0, 3), 6);
    let found = top(csr::read::<STOPI>());
    let _ = csr::clear::<HIE>(1 << SGEI);
    let _ = csr::swap::<VSTOPEI>(0);
    quiet();
    same("stopi", found, SGEI)
}

extern "C" fn read_stopei() -> u64 {
    cause(csr::read::<STOPEI>())
}

extern "C" fn read_stopi_cause() -> u64 {
    cause(csr::read::<STOPI>())
}

/// Whether a bit of mstateen0 can be cleared: Smstateen is there and knows it.
fn state_can_be_taken(bit: u64) -> bool {
    let _ = csr::clear::<MSTATEEN0>(bit);
    csr::read::<MSTATEEN0>().is_ok_and(|value| value & bit == 0 && value != 0)
}

fn stateen_imsic() -> Outcome {
    quiet();
    if !state_can_be_taken(STATE_IMSIC) {
        return Ok(());
    }
    let supervisor = attempt(Mode::Supervisor, read_stopei);
    open_guest_file(1);
    let guest = attempt(Mode::VirtualSupervisor, read_stopei);
    quiet();
    same("stopei in S-mode", supervisor.unwrap_or(0), ILLEGAL)?;
    same("stopei in VS-mode", guest.unwrap_or(0), ILLEGAL)
}

fn stateen_aia() -> Outcome {
    quiet();
    if !state_can_be_taken(STATE_AIA) {
        return Ok(());
    }
    let supervisor = attempt(Mode::Supervisor, read_stopi_cause);
    quiet();
    same("stopi in S-mode", supervisor.unwrap_or(0), ILLEGAL)
}

fn hstateen_imsic() -> Outcome {
    quiet();
    open_guest_file(1);
    if csr::clear::<HSTATEEN0>(STATE_IMSIC).is_err() {
        return Ok(());
    }
    let supervisor = attempt(Mode::Supervisor, read_stopei);
    let guest = attempt(Mode::VirtualSupervisor, read_stopei);
    quiet();
    same("stopei in S-mode", supervisor.unwrap_or(0), 0)?;
    same("stopei in VS-mode", guest.unwrap_or(0), VIRTUAL)
}

extern "C" fn read_sireg_file() -> u64 {
    cause(csr::write::<SISELECT>(0x70).and_then(|_| csr::read::<SIREG>()))
}

extern "C" fn read_vsireg_file() -> u64 {
    cause(csr::write::<VSISELECT>(0x70).and_then(|_| csr::read::<VSIREG>()))
}

extern "C" fn write_sireg_file() -> u64 {
    cause(csr::write::<SISELECT>(0x70).and_then(|_| csr::write::<SIREG>(0)))
}

extern "C" fn read_sireg_priority() -> u64 {
    cause(csr::write::<SISELECT>(0x30).and_then(|_| csr::read::<SIREG>()))
}

fn stateen_indirect_file() -> Outcome {
    quiet();
    open_guest_file(1);
    if !state_can_be_taken(STATE_IMSIC) {
        return Ok(());
    }
    let supervisor = attempt(Mode::Supervisor, read_sireg_file);
    let write = attempt(Mode::Supervisor, write_sireg_file);
    let other = attempt(Mode::Supervisor, read_vsireg_file);
    let guest = attempt(Mode::VirtualSupervisor, read_sireg_file);
    let priority = attempt(Mode::Supervisor, read_sireg_priority);
    quiet();
    same("read of sireg in S-mode", supervisor.unwrap_or(0), ILLEGAL)?;
    same("write of sireg in S-mode", write.unwrap_or(0), ILLEGAL)?;
    same("read of vsireg in S-mode", other.unwrap_or(0), ILLEGAL)?;
    same("read of sireg in VS-mode", guest.unwrap_or(0), ILLEGAL)?;
    same("a priority in S-mode", priority.unwrap_or(0), 0)
}

fn stateen_indirect_priorities() -> Outcome {
    quiet();
    if !state_can_be_taken(STATE_AIA) {
        return Ok(());
    }
    let priority = attempt(Mode::Supervisor, read_sireg_priority);
    let file = attempt(Mode::Supervisor, read_sireg_file);
    quiet();
    same("a priority in S-mode", priority.unwrap_or(0), ILLEGAL)?;
    same("the interrupt file in S-mode", file.unwrap_or(0), 0)
}

fn hstateen_indirect_file() -> Outcome {
    quiet();
    open_guest_file(1);
    if csr::clear::<HSTATEEN0>(STATE_IMSIC).is_err() {
        return Ok(());
    }
    let supervisor = attempt(Mode::Supervisor, read_sireg_file);
    let other = attempt(Mode::Supervisor, read_vsireg_file);
    let read = attempt(Mode::VirtualSupervisor, read_sireg_file);
    let write = attempt(Mode::VirtualSupervisor, write_sireg_file);
    quiet();
    same("read of sireg in S-mode", supervisor.unwrap_or(0), 0)?;
    same("read of vsireg in S-mode", other.unwrap_or(0), 0)?;
    same("read of sireg in VS-mode", read.unwrap_or(0), VIRTUAL)?;
    same("write of sireg in VS-mode", write.unwrap_or(0), VIRTUAL)
}
