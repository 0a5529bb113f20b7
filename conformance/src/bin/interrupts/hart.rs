//! Interrupts of M-mode and S-mode: priorities, *topi, delegation, injection by mvien and hvien.

use super::*;

pub fn selects_hold_their_range() -> Outcome {
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

pub fn iprio_is_even() -> Outcome {
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

pub fn iprio_external_is_zero() -> Outcome {
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

pub extern "C" fn read_iprio() -> u64 {
    cause(read_indirect::<SISELECT, SIREG>(0x30))
}

pub fn iprio_inaccessible_in_vs() -> Outcome {
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

pub fn unknown_select() -> Outcome {
    quiet();
    for select in [0, 0x2f, 0x40, 0x6f] {
        raises("mireg", read_indirect::<MISELECT, MIREG>(select), ILLEGAL)?;
        raises("sireg", read_indirect::<SISELECT, SIREG>(select), ILLEGAL)?;
    }
    Ok(())
}

pub fn top_is_read_only() -> Outcome {
    raises("mtopi", csr::write::<MTOPI>(0), ILLEGAL)?;
    raises("stopi", csr::write::<STOPI>(0), ILLEGAL)?;
    raises("vstopi", csr::write::<VSTOPI>(0), ILLEGAL)
}

pub fn mtopi_default_order() -> Outcome {
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

pub fn mtopi_needs_enable() -> Outcome {
    quiet();
    set_software_interrupt(0, true);
    gives("pending and not enabled", csr::read::<MTOPI>(), 0)?;
    let _ = csr::write::<MIE>(1 << MSI);
    same("pending and enabled", top(csr::read::<MTOPI>()), MSI)?;
    set_software_interrupt(0, false);
    gives("enabled and not pending", csr::read::<MTOPI>(), 0)
}

pub fn mtopi_skips_delegated() -> Outcome {
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

pub fn stopi_reports_delegated() -> Outcome {
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

pub extern "C" fn read_stopi() -> u64 {
    csr::read::<STOPI>().unwrap_or(EVERYTHING)
}

pub fn top_ignores_global_enable() -> Outcome {
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

pub fn mvip_aliases() -> Outcome {
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
pub fn inject(interrupt: u64) -> Outcome {
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

pub fn mvien_injects_software() -> Outcome {
    inject(SSI)
}

pub fn mvien_injects_external() -> Outcome {
    inject(SEI)
}

pub fn mvien_reserved() -> Outcome {
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

pub fn hvien_reserved() -> Outcome {
    let _ = csr::write::<HVIEN>(EVERYTHING);
    let found = csr::read::<HVIEN>();
    let _ = csr::write::<HVIEN>(0);
    same("bits 12 to 0", found.unwrap_or(EVERYTHING) & 0x1fff, 0)
}
