//! Where other implementations are known to depart from the specification, by name.
//!
//! A difference that one of these explains is counted under its name, never passed over.

mod control_flow;
mod departure;
mod instruction;
mod qemu;
mod seen;
mod spike;

pub use departure::Departure;
pub use instruction::Instruction;
pub use seen::Seen;

use crate::compare::{Difference, Run};
use crate::oracle::Oracle;
use crate::program::Program;

/// All that are known of an implementation.
pub fn all(oracle: Oracle) -> impl Iterator<Item = &'static Departure> + Clone {
    let (all, more) = match oracle {
        Oracle::Qemu => (qemu::ALL, control_flow::ALL),
        Oracle::Spike => (spike::ALL, &[][..]),
    };
    all.iter().chain(more)
}

/// Requirements of the specification that an implementation departs from.
#[must_use]
pub fn section(oracle: Oracle, name: &str) -> &'static str {
    all(oracle)
        .find(|departure| departure.name == name)
        .map_or("", |departure| departure.section)
}

/// Differences of a program, sorted by departure.
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
        let misleading = all(oracle).filter(|departure| departure.misleads);
        let harmless = all(oracle).filter(|departure| !departure.misleads);
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
