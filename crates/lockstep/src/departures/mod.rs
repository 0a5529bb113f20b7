//! Where other implementations are known to depart from the specification, by name.
//!
//! A difference that one of these explains is counted under its name, never passed over.

mod qemu;
mod seen;
mod spike;

pub use seen::{Instruction, Seen};

use crate::compare::{Difference, Run};
use crate::csr;
use crate::oracle::Oracle;
use crate::program::Program;

/// A known departure.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    /// What it does, in a few words.
    pub name: &'static str,
    /// What the specification says, and where.
    pub section: &'static str,
    /// Whether everything after it may differ too.
    pub misleads: bool,
    /// Whether a difference is this departure.
    pub explains: fn(&Seen<'_>) -> bool,
}

/// A choice that others have made otherwise: how long a WRS.NTO may wait that traps at last.
const RESERVATION_WAIT: Departure = Departure {
    name: "WRS.NTO traps at once where it may not wait for long",
    section: "a choice: unprivileged specification, \"Zawrs\": a bounded time, which may be zero",
    misleads: true,
    explains: |seen| {
        seen.only_theirs(|cause, instruction| {
            matches!(cause, 2 | 22) && instruction.is_reservation_wait()
        })
    },
};

/// Time runs as it likes, and a program that was interrupted between the two writes of a comparison
/// leaves a deadline that it has computed.
const DEADLINE: Departure = Departure {
    name: "a deadline was computed from the time",
    section: "a choice: unprivileged specification, \"Zicntr\": how much time an instruction takes",
    misleads: false,
    explains: |seen| {
        let is_deadline = |value: u64| value != 0 && value < 1 << 32;
        matches!(seen.number(), Some(csr::STIMECMP | csr::VSTIMECMP))
            && is_deadline(seen.difference.ours)
            && is_deadline(seen.difference.theirs)
    },
};

/// All that are known of an implementation.
#[must_use]
pub const fn all(oracle: Oracle) -> &'static [Departure] {
    match oracle {
        Oracle::Qemu => qemu::ALL,
        Oracle::Spike => spike::ALL,
    }
}

/// What the specification says where an implementation departs from it.
#[must_use]
pub fn section(oracle: Oracle, name: &str) -> &'static str {
    all(oracle)
        .iter()
        .find(|departure| departure.name == name)
        .map_or("", |departure| departure.section)
}

/// What becomes of the differences of a program.
#[derive(Debug, Default)]
pub struct Explained {
    /// The departures that were met.
    pub departures: Vec<&'static str>,
    /// The differences that none explains.
    pub unknown: Vec<Difference>,
}

/// Sorts differences into those that a known departure explains and the others.
#[must_use]
pub fn explain(
    oracle: Oracle,
    program: &Program,
    differences: &[Difference],
    ours: Run<'_>,
    theirs: Run<'_>,
) -> Explained {
    let mut explained = Explained::default();
    for &difference in differences {
        let seen = Seen {
            difference,
            ours,
            theirs,
            program,
        };
        let explains = |departure: &&Departure| (departure.explains)(&seen);
        // What misleads explains all that comes after it.
        let known = all(oracle);
        let misleading = known.iter().filter(|departure| departure.misleads);
        let harmless = known.iter().filter(|departure| !departure.misleads);
        match misleading.chain(harmless).find(explains) {
            Some(departure) => {
                if !explained.departures.contains(&departure.name) {
                    explained.departures.push(departure.name);
                }
                if departure.misleads {
                    break;
                }
            }
            None => explained.unknown.push(difference),
        }
    }
    explained
}
