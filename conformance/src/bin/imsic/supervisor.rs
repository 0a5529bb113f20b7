//! The supervisor-level file, and other harts' files.

use super::*;

pub fn supervisor_file_works() -> Outcome {
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

pub extern "C" fn read_stopei() -> u64 {
    cause(csr::read::<STOPEI>())
}

pub extern "C" fn read_eidelivery() -> u64 {
    cause(read_supervisor(EIDELIVERY))
}

pub extern "C" fn read_eip1() -> u64 {
    cause(read_supervisor(EIP0 + 1))
}

pub extern "C" fn claim_stopei() -> u64 {
    csr::swap::<STOPEI>(0).unwrap_or(u64::MAX)
}

pub fn exception(mode: Mode, function: extern "C" fn() -> u64) -> u64 {
    attempt(mode, function).unwrap_or(0)
}

pub fn supervisor_access() -> Outcome {
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

pub fn mvien_hides_the_file() -> Outcome {
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

pub fn open_here() -> u64 {
    open(write_machine);
    0
}

pub fn claim_here() -> u64 {
    csr::swap::<MTOPEI>(0).unwrap_or(u64::MAX)
}

pub fn another_hart() -> Outcome {
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
