//! Smstateen's bits for interrupts.

use super::*;

/// Tests whether a bit of mstateen0 can be cleared: Smstateen is there and knows it.
pub fn state_can_be_taken(bit: u64) -> bool {
    let _ = csr::clear::<MSTATEEN0>(bit);
    csr::read::<MSTATEEN0>().is_ok_and(|value| value & bit == 0 && value != 0)
}

pub fn stateen_imsic() -> Outcome {
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

pub fn stateen_aia() -> Outcome {
    quiet();
    if !state_can_be_taken(STATE_AIA) {
        return Ok(());
    }
    let supervisor = attempt(Mode::Supervisor, read_stopi_cause);
    quiet();
    same("stopi in S-mode", supervisor.unwrap_or(0), ILLEGAL)
}

pub fn hstateen_imsic() -> Outcome {
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

pub extern "C" fn read_sireg_file() -> u64 {
    cause(csr::write::<SISELECT>(0x70).and_then(|_| csr::read::<SIREG>()))
}

pub extern "C" fn read_vsireg_file() -> u64 {
    cause(csr::write::<VSISELECT>(0x70).and_then(|_| csr::read::<VSIREG>()))
}

pub extern "C" fn write_sireg_file() -> u64 {
    cause(csr::write::<SISELECT>(0x70).and_then(|_| csr::write::<SIREG>(0)))
}

pub extern "C" fn read_sireg_priority() -> u64 {
    cause(csr::write::<SISELECT>(0x30).and_then(|_| csr::read::<SIREG>()))
}

pub fn stateen_indirect_file() -> Outcome {
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

pub fn stateen_indirect_priorities() -> Outcome {
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

pub fn hstateen_indirect_file() -> Outcome {
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
