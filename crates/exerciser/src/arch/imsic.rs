//! The interrupt file of a hart (AIA chapter 3).

use riscv::imsic::select::{EIDELIVERY, EIE, EIP, EITHRESHOLD};

use super::csr;

/// Opens this hart's interrupt file for the identities 1 to `identities`, all enabled, none pending.
pub fn open(identities: u64) {
    csr::write_indirect(EITHRESHOLD, 0);
    // On RV64 only the even-numbered registers of an array exist; each holds 64 identities (§3.8).
    for register in 0..=identities / 64 {
        csr::write_indirect(EIP + 2 * register, 0);
        csr::write_indirect(EIE + 2 * register, u64::MAX);
    }
    csr::write_indirect(EIDELIVERY, 1);
}

/// Which of the identities 0 to 63 are pending in this hart's file.
pub fn pending() -> u64 {
    csr::read_indirect(EIP)
}

/// Sets which of them are pending.
pub fn set_pending(identities: u64) {
    csr::write_indirect(EIP, identities);
}

/// Which of the identities 0 to 63 are enabled in this hart's file.
pub fn enabled() -> u64 {
    csr::read_indirect(EIE)
}

/// Sets which of them are enabled.
pub fn set_enabled(identities: u64) {
    csr::write_indirect(EIE, identities);
}

/// Registers of 64 identities each that the files of QEMU's board and of the machine have. Further ones should read as zero
/// ("External interrupt-pending registers"); on QEMU 10 they do not exist, and an access traps.
const REGISTERS: u64 = 4;

/// Sets the pending and the enable bits of all identities above 63 that the file has.
pub fn set_all_above_first(bits: u64) {
    for register in 1..REGISTERS {
        csr::write_indirect(EIE + 2 * register, bits);
        csr::write_indirect(EIP + 2 * register, bits);
    }
}

/// Sends identity `identity` to the interrupt file whose page is `page` (§3.5: `seteipnum_le`, offset 0).
pub fn send(page: u64, identity: u64) {
    super::memory::device_store32(page, identity as u32);
}
