//! Smaia and Ssaia in the hart: AIA, chapters "Interrupts for Machine and Supervisor Levels" and
//! "Interrupts for Virtual Machines (VS Level)", and Smstateen's bits for them.

#![no_std]
#![no_main]

mod guest;
mod hart;
mod state;

use conformance::csr::{self, *};
use conformance::device::{self, machine_file, set_software_interrupt, supervisor_file};
use conformance::mode::{Mode, attempt, cause, run};
use conformance::suite::{Failure, gives, raises, same};
use conformance::{suite, trap};
use guest::*;
use hart::*;
use state::*;

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
