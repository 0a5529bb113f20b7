//! IMSIC: AIA, chapter "Incoming MSI Controller", and the CSRs that lead to it.

#![no_std]
#![no_main]

use conformance::csr::{self, *};
use conformance::device::{self, machine_file, supervisor_file};
use conformance::mode::{Mode, attempt, cause};
use conformance::suite::{Failure, gives, raises, same};
use conformance::{harts, suite, trap};

suite!(
    "imsic",
    delivery_is_warl: "eidelivery holds 0 and 1",
    threshold_holds_identities: "eithreshold holds every identity up to 255",
    arrays_hold_bits: "eip and eie hold all bits but that of identity 0",
    odd_registers_are_missing: "odd eip and eie registers raise illegal instruction",
    reserved_registers_read_zero: "reserved register numbers read as zero and ignore writes",
    page_sets_pending: "seteipnum_le sets the pending bit of its identity",
    page_ignores_others: "seteipnum_le ignores identities that are not implemented",
    page_reads_zero: "the page reads as zero",
    big_endian_port: "seteipnum_be takes its number in big-endian byte order, or ignores it",
    top_is_lowest: "mtopei reports the lowest pending and enabled identity",
    claim_clears: "csrrw of mtopei claims what it reads",
    threshold_masks: "eithreshold keeps out identities that are not below it",
    delivery_gates_the_wire: "eidelivery gates mip.MEIP and not mtopei",
    machine_interrupt: "a message is taken as machine external interrupt",
    supervisor_file_works: "the supervisor-level file drives SEIP and stopei",
    supervisor_access: "S-mode has access to its file and U-mode has not",
    guest_files_drive_hgeip: "each guest file drives its own bit of hgeip",
    hgeip_is_read_only: "hgeip is read-only, and hgeie has no bit beyond the files",
    hgeie_makes_sgeip: "hgeie chooses what makes hip.SGEIP",
    vgein_selects_the_file: "hstatus.VGEIN selects the file of vsireg, vstopei and VSEIP",
    no_file_no_access: "without a file, vsireg and vstopei raise illegal instruction in HS-mode",
    guest_sees_its_file: "VS-mode reaches the guest file through sireg and stopei",
    guest_without_a_file: "without a file, VS-mode's accesses raise virtual instruction",
    guest_odd_registers: "odd registers raise virtual instruction in VS-mode",
    mvien_hides_the_file: "mvien bit 9 takes the supervisor-level file away from S-mode",
    another_hart: "a message reaches the file of another hart alone",
);

type Outcome = Result<(), Failure>;

const EIDELIVERY: u64 = 0x70;
const EITHRESHOLD: u64 = 0x72;
const EIP0: u64 = 0x80;
const EIE0: u64 = 0xc0;

const MEIP: u64 = 1 << 11;
const SGEIP: u64 = 1 << 12;
const SEIP: u64 = 1 << 9;
const VSEIP: u64 = 1 << 10;
const VGEIN_SHIFT: u32 = 12;

fn read_machine(select: u64) -> csr::Access {
    read_indirect::<MISELECT, MIREG>(select)
}

fn write_machine(select: u64, value: u64) -> csr::Access {
    write_indirect::<MISELECT, MIREG>(select, value)
}

fn read_supervisor(select: u64) -> csr::Access {
    read_indirect::<SISELECT, SIREG>(select)
}

fn write_supervisor(select: u64, value: u64) -> csr::Access {
    write_indirect::<SISELECT, SIREG>(select, value)
}

fn write_guest(select: u64, value: u64) -> csr::Access {
    write_indirect::<VSISELECT, VSIREG>(select, value)
}

fn select_guest(number: u64) -> csr::Access {
    csr::clear::<HSTATUS>(0x3f << VGEIN_SHIFT)?;
    csr::set::<HSTATUS>(number << VGEIN_SHIFT)
}

/// Clears a file and then enables delivery and identities 1 to 63.
fn open(write: fn(u64, u64) -> csr::Access) {
    for select in (EIP0..0x88).chain(EIE0..0xc8).step_by(2) {
        let _ = write(select, 0);
    }
    for (select, value) in [(EITHRESHOLD, 0), (EIE0, u64::MAX), (EIDELIVERY, 1)] {
        let _ = write(select, value);
    }
}

fn close(write: fn(u64, u64) -> csr::Access) {
    let _ = write(EIDELIVERY, 0);
    for select in (EIP0..0x88).step_by(2) {
        let _ = write(select, 0);
    }
}

fn allow_state() {
    // Smstateen, where it is there: everything to the lower modes.
    let _ = csr::write::<MSTATEEN0>(u64::MAX);
    let _ = csr::write::<HSTATEEN0>(u64::MAX);
}

fn delivery_is_warl() -> Outcome {
    for value in [1, 0] {
        gives("the write", write_machine(EIDELIVERY, value), value)?;
        gives("eidelivery", read_machine(EIDELIVERY), value)?;
    }
    let _ = write_machine(EIDELIVERY, 0xfffe);
    let legal = matches!(read_machine(EIDELIVERY), Ok(0 | 1 | 0x4000_0000));
    same("a legal value after a write of another", legal.into(), 1)
}

fn threshold_holds_identities() -> Outcome {
    for value in [1, 63, 128, 255, 0] {
        gives("the write", write_machine(EITHRESHOLD, value), value)?;
        gives("eithreshold", read_machine(EITHRESHOLD), value)?;
    }
    Ok(())
}

fn arrays_hold_bits() -> Outcome {
    close(write_machine);
    for (select, all) in [
        (EIP0, !1),
        (EIP0 + 6, u64::MAX),
        (EIE0, !1),
        (EIE0 + 6, u64::MAX),
    ] {
        gives(
            "the write of ones",
            write_machine(select, u64::MAX),
            u64::MAX,
        )?;
        gives("all ones", read_machine(select), all)?;
        gives("the write of zeros", write_machine(select, 0), 0)?;
        gives("all zeros", read_machine(select), 0)?;
    }
    Ok(())
}

fn odd_registers_are_missing() -> Outcome {
    for select in [0x81, 0xbf, 0xc1, 0xff] {
        raises("a read in M-mode", read_machine(select), ILLEGAL)?;
        raises("a write in M-mode", write_machine(select, 0), ILLEGAL)?;
        raises("a read of sireg", read_supervisor(select), ILLEGAL)?;
    }
    Ok(())
}

fn reserved_registers_read_zero() -> Outcome {
    for select in [0x71, 0x73, 0x7f] {
        gives("the write", write_machine(select, 1), 1)?;
        gives("the register", read_machine(select), 0)?;
    }
    Ok(())
}

fn page_sets_pending() -> Outcome {
    close(write_machine);
    for identity in [1, 63, 64, 255] {
        device::write(machine_file(0), identity);
        let select = EIP0 + u64::from(identity / 64 * 2);
        gives(
            "the pending bits",
            read_machine(select),
            1 << (identity % 64),
        )?;
        let _ = write_machine(select, 0);
    }
    Ok(())
}

fn page_ignores_others() -> Outcome {
    close(write_machine);
    for identity in [0, 256, 0x1_0001, u32::MAX] {
        device::write(machine_file(0), identity);
    }
    for select in (EIP0..0x88).step_by(2) {
        gives("the pending bits", read_machine(select), 0)?;
    }
    Ok(())
}

fn page_reads_zero() -> Outcome {
    device::write(machine_file(0), 9);
    for offset in [0, 4, 8, 0xffc] {
        same("a word", device::read(machine_file(0) + offset).into(), 0)?;
    }
    Ok(())
}

fn big_endian_port() -> Outcome {
    close(write_machine);
    device::write(machine_file(0) + 4, 5_u32.swap_bytes());
    let pending = read_machine(EIP0).unwrap_or(u64::MAX);
    same("other pending bits", pending & !(1 << 5), 0)
}

fn top_is_lowest() -> Outcome {
    open(write_machine);
    gives("mtopei with nothing pending", csr::read::<MTOPEI>(), 0)?;
    for (identity, expected) in [(40, 40), (63, 40), (2, 2)] {
        device::write(machine_file(0), identity);
        gives("mtopei", csr::read::<MTOPEI>(), expected << 16 | expected)?;
    }
    let _ = write_machine(EIE0, !(1 << 2));
    gives(
        "mtopei with identity 2 disabled",
        csr::read::<MTOPEI>(),
        40 << 16 | 40,
    )
}

fn claim_clears() -> Outcome {
    open(write_machine);
    for identity in [30, 7, 55] {
        device::write(machine_file(0), identity);
    }
    for expected in [7, 30, 55] {
        gives(
            "csrrw",
            csr::swap::<MTOPEI>(0xffff_ffff),
            expected << 16 | expected,
        )?;
        let pending = read_machine(EIP0).unwrap_or(0);
        same("the pending bit after it", pending >> expected & 1, 0)?;
    }
    gives("with nothing left", csr::swap::<MTOPEI>(0), 0)
}

fn threshold_masks() -> Outcome {
    open(write_machine);
    device::write(machine_file(0), 20);
    for (threshold, top) in [(20, 0), (21, 20), (1, 0), (0, 20)] {
        let _ = write_machine(EITHRESHOLD, threshold);
        gives("mtopei", csr::read::<MTOPEI>(), top << 16 | top)?;
        let wire = csr::read::<MIP>().unwrap_or(0) & MEIP != 0;
        same("mip.MEIP", wire.into(), (top != 0).into())?;
    }
    Ok(())
}

fn delivery_gates_the_wire() -> Outcome {
    open(write_machine);
    device::write(machine_file(0), 3);
    same("mip.MEIP", csr::read::<MIP>().unwrap_or(0) & MEIP, MEIP)?;
    let _ = csr::clear::<MIP>(MEIP);
    same(
        "mip.MEIP is read-only",
        csr::read::<MIP>().unwrap_or(0) & MEIP,
        MEIP,
    )?;
    let _ = write_machine(EIDELIVERY, 0);
    same(
        "mip.MEIP without delivery",
        csr::read::<MIP>().unwrap_or(0) & MEIP,
        0,
    )?;
    gives(
        "mtopei without delivery",
        csr::read::<MTOPEI>(),
        3 << 16 | 3,
    )
}

fn machine_interrupt() -> Outcome {
    open(write_machine);
    let _ = csr::write::<MIE>(MEIP);
    let _ = csr::set::<MSTATUS>(8);
    trap::clear();
    device::write(machine_file(0), 12);
    let taken = (0..1000).find_map(|_| trap::interrupt());
    let _ = csr::clear::<MSTATUS>(8);
    let _ = csr::write::<MIE>(0);
    close(write_machine);
    same("the interrupt", taken.unwrap_or(0), 11)
}

fn supervisor_file_works() -> Outcome {
    open(write_supervisor);
    device::write(supervisor_file(0, 0), 17);
    same("mip.SEIP", csr::read::<MIP>().unwrap_or(0) & SEIP, SEIP)?;
    gives("stopei", csr::swap::<STOPEI>(0), 17 << 16 | 17)?;
    same(
        "mip.SEIP after the claim",
        csr::read::<MIP>().unwrap_or(0) & SEIP,
        0,
    )?;
    gives(
        "the machine-level file's pending bits",
        read_machine(EIP0),
        0,
    )
}

extern "C" fn read_stopei() -> u64 {
    cause(csr::read::<STOPEI>())
}

extern "C" fn read_eidelivery() -> u64 {
    cause(read_supervisor(EIDELIVERY))
}

extern "C" fn read_eip1() -> u64 {
    cause(read_supervisor(EIP0 + 1))
}

extern "C" fn claim_stopei() -> u64 {
    csr::swap::<STOPEI>(0).unwrap_or(u64::MAX)
}

fn exception(mode: Mode, function: extern "C" fn() -> u64) -> u64 {
    attempt(mode, function).unwrap_or(0)
}

fn supervisor_access() -> Outcome {
    allow_state();
    same(
        "sireg in S-mode",
        exception(Mode::Supervisor, read_eidelivery),
        0,
    )?;
    same(
        "stopei in S-mode",
        exception(Mode::Supervisor, read_stopei),
        0,
    )?;
    same(
        "stopei in U-mode",
        exception(Mode::User, read_stopei),
        ILLEGAL,
    )
}

fn guest_files_drive_hgeip() -> Outcome {
    for guest in 1..=u64::from(device::guest_files()) {
        gives("hstatus", select_guest(guest), guest << VGEIN_SHIFT)?;
        open(write_guest);
        device::write(supervisor_file(0, guest as usize), 4);
        gives("hgeip", csr::read::<HGEIP>(), 1 << guest)?;
        gives("vstopei", csr::swap::<VSTOPEI>(0), 4 << 16 | 4)?;
        gives("hgeip after the claim", csr::read::<HGEIP>(), 0)?;
        close(write_guest);
    }
    select_guest(0).map(|_| ()).map_err(|cause| Failure {
        what: "hstatus",
        expected: 0,
        found: cause,
    })
}

fn hgeip_is_read_only() -> Outcome {
    raises("a write of hgeip", csr::write::<HGEIP>(0), ILLEGAL)?;
    gives(
        "the write of hgeie",
        csr::write::<HGEIE>(u64::MAX),
        u64::MAX,
    )?;
    let files = !1 & u64::MAX >> (63 - device::guest_files());
    gives("hgeie", csr::read::<HGEIE>(), files)?;
    gives("the write of hgeie", csr::write::<HGEIE>(0), 0)
}

fn hgeie_makes_sgeip() -> Outcome {
    let _ = select_guest(3);
    open(write_guest);
    let _ = csr::write::<HGEIE>(0);
    device::write(supervisor_file(0, 3), 1);
    same(
        "hip.SGEIP with hgeie = 0",
        csr::read::<HIP>().unwrap_or(0) & SGEIP,
        0,
    )?;
    let _ = csr::write::<HGEIE>(1 << 4);
    same(
        "hip.SGEIP with another file's bit",
        csr::read::<HIP>().unwrap_or(0) & SGEIP,
        0,
    )?;
    let _ = csr::write::<HGEIE>(1 << 3);
    same("hip.SGEIP", csr::read::<HIP>().unwrap_or(0) & SGEIP, SGEIP)?;
    gives("hgeip", csr::read::<HGEIP>(), 1 << 3)?;
    let _ = csr::write::<HGEIE>(0);
    close(write_guest);
    gives("hgeip after the file was cleared", csr::read::<HGEIP>(), 0)
}

fn vgein_selects_the_file() -> Outcome {
    for guest in [2, 5] {
        let _ = select_guest(guest);
        open(write_guest);
    }
    device::write(supervisor_file(0, 2), 8);
    gives("vstopei of file 5", csr::read::<VSTOPEI>(), 0)?;
    same(
        "hip.VSEIP with file 5",
        csr::read::<HIP>().unwrap_or(0) & VSEIP,
        0,
    )?;
    let _ = select_guest(2);
    gives("vstopei of file 2", csr::read::<VSTOPEI>(), 8 << 16 | 8)?;
    same(
        "hip.VSEIP with file 2",
        csr::read::<HIP>().unwrap_or(0) & VSEIP,
        VSEIP,
    )?;
    let pending = read_indirect::<VSISELECT, VSIREG>(EIP0);
    gives("eip0 of file 2", pending, 1 << 8)?;
    let _ = select_guest(0);
    same(
        "hip.VSEIP with no file",
        csr::read::<HIP>().unwrap_or(0) & VSEIP,
        0,
    )?;
    for guest in [2, 5] {
        let _ = select_guest(guest);
        close(write_guest);
    }
    Ok(())
}

extern "C" fn read_vsireg() -> u64 {
    cause(read_indirect::<VSISELECT, VSIREG>(EIDELIVERY))
}

extern "C" fn read_vstopei() -> u64 {
    cause(csr::read::<VSTOPEI>())
}

fn no_file_no_access() -> Outcome {
    allow_state();
    let _ = select_guest(0);
    raises(
        "vsireg in M-mode",
        read_indirect::<VSISELECT, VSIREG>(EIDELIVERY),
        ILLEGAL,
    )?;
    raises("vstopei in M-mode", csr::read::<VSTOPEI>(), ILLEGAL)?;
    same(
        "vsireg in HS-mode",
        exception(Mode::Supervisor, read_vsireg),
        ILLEGAL,
    )?;
    same(
        "vstopei in HS-mode",
        exception(Mode::Supervisor, read_vstopei),
        ILLEGAL,
    )?;
    let _ = select_guest(1);
    same(
        "vsireg in HS-mode with a file",
        exception(Mode::Supervisor, read_vsireg),
        0,
    )?;
    same(
        "vstopei in HS-mode with a file",
        exception(Mode::Supervisor, read_vstopei),
        0,
    )?;
    raises(
        "iprio through vsireg",
        read_indirect::<VSISELECT, VSIREG>(0x30),
        ILLEGAL,
    )
}

fn guest_sees_its_file() -> Outcome {
    allow_state();
    let _ = select_guest(6);
    open(write_guest);
    device::write(supervisor_file(0, 6), 29);
    same(
        "sireg",
        exception(Mode::VirtualSupervisor, read_eidelivery),
        0,
    )?;
    let claimed = conformance::mode::run(Mode::VirtualSupervisor, claim_stopei);
    same("stopei", claimed, 29 << 16 | 29)?;
    gives("hgeip after the claim", csr::read::<HGEIP>(), 0)?;
    close(write_guest);
    same(
        "vsireg",
        exception(Mode::VirtualSupervisor, read_vsireg),
        VIRTUAL,
    )?;
    same(
        "vstopei",
        exception(Mode::VirtualSupervisor, read_vstopei),
        VIRTUAL,
    )?;
    same(
        "stopei in VU-mode",
        exception(Mode::VirtualUser, read_stopei),
        VIRTUAL,
    )
}

fn guest_without_a_file() -> Outcome {
    allow_state();
    let _ = select_guest(0);
    same(
        "sireg",
        exception(Mode::VirtualSupervisor, read_eidelivery),
        VIRTUAL,
    )?;
    same(
        "stopei",
        exception(Mode::VirtualSupervisor, read_stopei),
        VIRTUAL,
    )
}

fn guest_odd_registers() -> Outcome {
    allow_state();
    let _ = select_guest(1);
    same(
        "eip1",
        exception(Mode::VirtualSupervisor, read_eip1),
        VIRTUAL,
    )?;
    let _ = select_guest(0);
    Ok(())
}

fn mvien_hides_the_file() -> Outcome {
    allow_state();
    let _ = csr::set::<MVIEN>(SEIP);
    if csr::read::<MVIEN>().unwrap_or(0) & SEIP == 0 {
        // The bit may be read-only zero.
        return Ok(());
    }
    let outcome = same(
        "stopei in S-mode",
        exception(Mode::Supervisor, read_stopei),
        ILLEGAL,
    )
    .and_then(|()| {
        same(
            "sireg in S-mode",
            exception(Mode::Supervisor, read_eidelivery),
            ILLEGAL,
        )
    })
    .and_then(|()| gives("sireg in M-mode", read_supervisor(EIDELIVERY), 1));
    let _ = csr::clear::<MVIEN>(SEIP);
    outcome
}

fn open_here() -> u64 {
    open(write_machine);
    0
}

fn claim_here() -> u64 {
    csr::swap::<MTOPEI>(0).unwrap_or(u64::MAX)
}

fn another_hart() -> Outcome {
    if !harts::is_present(1) {
        return Ok(());
    }
    open(write_machine);
    harts::run_on(1, open_here);
    device::write(machine_file(1), 21);
    gives("mtopei of hart 0", csr::read::<MTOPEI>(), 0)?;
    same(
        "mtopei of hart 1",
        harts::run_on(1, claim_here),
        21 << 16 | 21,
    )
}
