//! A machine without the custom extensions of docs/reference/extensions.md.

#![no_std]
#![no_main]

use conformance::csr::{self, ILLEGAL};
use conformance::extension::{HPLEGAP, HPLEWINDOW, HPURGE, fence_everywhere, pause, pending_of};
use conformance::mode::{Mode, attempt, cause, run};
use conformance::suite;
use conformance::suite::{Failure, same};

suite!(
    "plain",
    absent: "the encodings of the custom extensions raise illegal instruction in every mode",
    pause_passes: "PAUSE never exits",
);

extern "C" fn gap() -> u64 {
    cause(csr::read::<HPLEGAP>())
}

extern "C" fn window() -> u64 {
    cause(csr::write::<HPLEWINDOW>(1))
}

extern "C" fn purge() -> u64 {
    cause(csr::read::<HPURGE>())
}

extern "C" fn pending() -> u64 {
    cause(pending_of(0))
}

extern "C" fn broadcast() -> u64 {
    fence_everywhere().unwrap_or(u64::MAX)
}

fn absent() -> Result<(), Failure> {
    for (name, function) in [
        ("hplegap", gap as extern "C" fn() -> u64),
        ("hplewindow", window),
        ("hpurge", purge),
        ("the pending test", pending),
        ("the broadcast fence", broadcast),
    ] {
        same(name, function(), ILLEGAL)?;
        for mode in [
            Mode::Supervisor,
            Mode::User,
            Mode::VirtualSupervisor,
            Mode::VirtualUser,
        ] {
            same(name, attempt(mode, function).unwrap_or(0), ILLEGAL)?;
        }
    }
    Ok(())
}

extern "C" fn pause_long() -> u64 {
    u64::from(pause(100_000))
}

fn pause_passes() -> Result<(), Failure> {
    same("exits", run(Mode::VirtualSupervisor, pause_long), 0)
}
