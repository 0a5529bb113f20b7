//! IMSIC: AIA, chapter "Incoming MSI Controller", and the CSRs that lead to it.

#![no_std]
#![no_main]

mod file;
mod guest;
mod supervisor;

use conformance::csr::{self, *};
use conformance::device::{self, machine_file, supervisor_file};
use conformance::mode::{Mode, attempt, cause};
use conformance::suite::{Failure, gives, raises, same};
use conformance::{harts, suite, trap};
use file::*;
use guest::*;
use supervisor::*;

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
