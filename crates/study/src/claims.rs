//! Claims about the policies, each claim with the runs that show it: `experiments/policies.toml`.
//!
//! A [`Claims`] file names systems, the methods that are compared, and what must hold of their figures. [`plan`] makes the
//! runs of it, [`fn@judge`] says what came out.

mod judge;
mod read;
#[cfg(test)]
mod tests;

pub use judge::{Finding, Judged, Verdict, judge, page, settle, show};
pub use read::{Bound, Claim, Claims, ClaimsError, Test, Where};

use crate::laboratory::{Computer, Point};
use std::path::Path;

/// Beginning of an event's measure.
const EVENT: &str = "events.";

/// The runs of a claim: every method with every seed, the methods in their order.
pub fn plan(claim: &Claim, folder: &Path, computer: &Computer, seeds: u32) -> Vec<Point> {
    let on_qemu = *computer == Computer::Qemu;
    let own = if on_qemu {
        &claim.on_qemu
    } else {
        &claim.on_machine
    };
    let computer = match (computer, &claim.profile) {
        (
            Computer::Machine {
                profile: Some(given),
            },
            _,
        ) => Computer::Machine {
            profile: Some(given.clone()),
        },
        (Computer::Machine { .. }, profile) => Computer::Machine {
            profile: profile.as_deref().map(|name| place(folder, name)),
        },
        (Computer::Qemu, _) => Computer::Qemu,
    };
    let point = |method: &String, seed: u64| Point {
        system: folder.join(&claim.system),
        changes: claim
            .set
            .iter()
            .chain(&own.set)
            .cloned()
            .chain(std::iter::once(format!("{}={method}", claim.vary)))
            .collect(),
        computer: computer.clone(),
        seed,
        ..Point::default()
    };
    let seeds = if own.once { 1 } else { seeds };
    let each = |method| (0..u64::from(seeds)).map(move |seed| point(method, seed));
    claim.methods.iter().flat_map(each).collect()
}

/// A profile that is a file lies beside the claims.
fn place(folder: &Path, profile: &str) -> String {
    let file = folder.join(profile);
    if file.is_file() {
        file.display().to_string()
    } else {
        String::from(profile)
    }
}
