//! A computer without guest interrupt files: AIA, "Incoming MSI Controller", where GEILEN is zero.

#![no_std]
#![no_main]

use conformance::csr::{self, *};
use conformance::device::{self, supervisor_file};
use conformance::mode::{Mode, attempt, cause};
use conformance::suite;
use conformance::suite::{Failure, gives, raises, same};

suite!(
    "nofiles",
    registers_are_zero: "hgeie and hgeip are read-only zero",
    no_file_can_be_chosen: "hstatus.VGEIN holds zero alone",
    hypervisor_has_no_access: "vsireg and vstopei raise illegal instruction in HS-mode",
    guest_has_no_access: "sireg and stopei raise virtual instruction in VS-mode",
    supervisor_file_is_there: "the supervisor-level file takes messages",
);

type Outcome = Result<(), Failure>;

const EIDELIVERY: u64 = 0x70;
const EITHRESHOLD: u64 = 0x72;
const EIE0: u64 = 0xc0;
const SEIP: u64 = 1 << 9;
/// SE, ENVCFG, CSRIND, AIA and IMSIC of mstateen0 and hstateen0.
const STATE: u64 = 0xdc << 56;

fn registers_are_zero() -> Outcome {
    let _ = csr::write::<HGEIE>(u64::MAX);
    gives("hgeie", csr::read::<HGEIE>(), 0)?;
    gives("hgeip", csr::read::<HGEIP>(), 0)?;
    raises("a write of hgeip", csr::write::<HGEIP>(0), ILLEGAL)
}

fn no_file_can_be_chosen() -> Outcome {
    let _ = csr::set::<HSTATUS>(0x3f << 12);
    let found = csr::read::<HSTATUS>().unwrap_or(u64::MAX);
    same("hstatus.VGEIN", found >> 12 & 0x3f, 0)
}

extern "C" fn read_sireg() -> u64 {
    cause(read_indirect::<SISELECT, SIREG>(EIDELIVERY))
}

extern "C" fn read_stopei() -> u64 {
    cause(csr::read::<STOPEI>())
}

extern "C" fn read_vsireg() -> u64 {
    cause(read_indirect::<VSISELECT, VSIREG>(EIDELIVERY))
}

extern "C" fn read_vstopei() -> u64 {
    cause(csr::read::<VSTOPEI>())
}

fn exception(mode: Mode, access: extern "C" fn() -> u64) -> u64 {
    let _ = csr::write::<MSTATEEN0>(STATE);
    let _ = csr::write::<HSTATEEN0>(STATE);
    attempt(mode, access).unwrap_or(0)
}

fn hypervisor_has_no_access() -> Outcome {
    let mode = Mode::Supervisor;
    same("vsireg", exception(mode, read_vsireg), ILLEGAL)?;
    same("vstopei", exception(mode, read_vstopei), ILLEGAL)
}

fn guest_has_no_access() -> Outcome {
    let mode = Mode::VirtualSupervisor;
    same("sireg", exception(mode, read_sireg), VIRTUAL)?;
    same("stopei", exception(mode, read_stopei), VIRTUAL)
}

fn supervisor_file_is_there() -> Outcome {
    same("guest index bits", device::guest_index_bits().into(), 0)?;
    for (register, value) in [(EIDELIVERY, 1), (EITHRESHOLD, 0), (EIE0, 1 << 5)] {
        let written = write_indirect::<SISELECT, SIREG>(register, value);
        gives("a write of sireg", written, value)?;
    }
    device::write(supervisor_file(0, 0), 5);
    let pending = csr::read::<MIP>().unwrap_or(0) & SEIP;
    same("mip.SEIP", pending, SEIP)?;
    gives("stopei", csr::swap::<STOPEI>(0), 5 << 16 | 5)?;
    let pending = csr::read::<MIP>().unwrap_or(0) & SEIP;
    same("mip.SEIP after the claim", pending, 0)
}
