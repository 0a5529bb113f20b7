//! Guest files: hgeip, VGEIN, and what VS-mode sees.

use super::*;

pub fn guest_files_drive_hgeip() -> Outcome {
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

pub fn hgeip_is_read_only() -> Outcome {
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

pub fn hgeie_makes_sgeip() -> Outcome {
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

pub fn vgein_selects_the_file() -> Outcome {
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

pub extern "C" fn read_vsireg() -> u64 {
    cause(read_indirect::<VSISELECT, VSIREG>(EIDELIVERY))
}

pub extern "C" fn read_vstopei() -> u64 {
    cause(csr::read::<VSTOPEI>())
}

pub fn no_file_no_access() -> Outcome {
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

pub fn guest_sees_its_file() -> Outcome {
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

pub fn guest_without_a_file() -> Outcome {
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

pub fn guest_odd_registers() -> Outcome {
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
