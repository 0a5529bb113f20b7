//! The custom extensions of docs/reference/extensions.md that purge translations by hardware, with the purge mask. Not
//! for other machines.

#![no_std]
#![no_main]

use conformance::csr::{self, HSTATUS, ILLEGAL, VIRTUAL};
use conformance::extension::{HPURGE, fence_everywhere};
use conformance::mode::{Mode, attempt};
use conformance::suite;
use conformance::suite::{Failure, gives, same};

suite!(
    "fences",
    entry_clears: "an entry to a guest clears the own bit of hpurge and no other",
    entry_elsewhere: "an entry to U-mode and a return to HS-mode leave hpurge alone",
    broadcast_modes: "the broadcast fence is for M-, HS- and VS-mode",
    broadcast_trapped: "hstatus.VTVM traps the broadcast fence in VS-mode",
    broadcast_mask: "the broadcast fence leaves hpurge alone",
);

type Outcome = Result<(), Failure>;

const VTVM: u64 = 1 << 20;

extern "C" fn nothing() -> u64 {
    u64::MAX
}

extern "C" fn broadcast() -> u64 {
    fence_everywhere().unwrap_or(u64::MAX)
}

/// The bits of hpurge that exist.
fn all_bits() -> u64 {
    let _ = csr::write::<HPURGE>(u64::MAX);
    csr::read::<HPURGE>().unwrap_or(0)
}

fn entry_clears() -> Outcome {
    let all = all_bits();
    let guest = attempt(Mode::VirtualSupervisor, nothing);
    gives(
        "hpurge after an entry to VS-mode",
        csr::read::<HPURGE>(),
        all & !1,
    )?;
    let _ = csr::write::<HPURGE>(1);
    let user = attempt(Mode::VirtualUser, nothing);
    gives("hpurge after an entry to VU-mode", csr::read::<HPURGE>(), 0)?;
    same("traps", u64::from(guest.is_some() || user.is_some()), 0)
}

fn entry_elsewhere() -> Outcome {
    let all = all_bits();
    attempt(Mode::Supervisor, nothing);
    attempt(Mode::User, nothing);
    gives("hpurge", csr::read::<HPURGE>(), all)
}

fn same_cause(what: &'static str, found: Option<u64>, expected: u64) -> Outcome {
    same(what, found.unwrap_or(u64::MAX), expected)
}

fn broadcast_modes() -> Outcome {
    same("M", broadcast(), u64::MAX)?;
    same_cause("HS", attempt(Mode::Supervisor, broadcast), u64::MAX)?;
    same_cause("U", attempt(Mode::User, broadcast), ILLEGAL)?;
    same_cause("VS", attempt(Mode::VirtualSupervisor, broadcast), u64::MAX)?;
    same_cause("VU", attempt(Mode::VirtualUser, broadcast), VIRTUAL)
}

fn broadcast_trapped() -> Outcome {
    let _ = csr::set::<HSTATUS>(VTVM);
    let found = attempt(Mode::VirtualSupervisor, broadcast);
    let _ = csr::clear::<HSTATUS>(VTVM);
    same_cause("the fence", found, VIRTUAL)
}

fn broadcast_mask() -> Outcome {
    let all = all_bits();
    broadcast();
    gives("hpurge", csr::read::<HPURGE>(), all)
}
