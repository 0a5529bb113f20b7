//! `partita fuzz --mutants`: which faults the farm convicts.

use super::super::failure::Failure;
use super::super::output::{self, write_json};
use fuzz::judge::{Bounds, Invariant};
use fuzz::mutant::{Hypervisors, Mutant, MutantTrial, Outcome, Tree, try_mutant, try_sound};
use runner::table::Table;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use system::cache::Cache;

/// Folder of the mutants, a file that tells the root of the sources from other folders, and the place of copy and builds in that root.
const MUTANTS: &str = "crates/fuzz/mutants";
const HYPERVISOR_CRATE: &str = "crates/hypervisor/Cargo.toml";
const PLACE: &str = "target/mutants";
/// Time in which a mutant's systems are begun, without `--systems` and `--hours`.
const TIME: Duration = Duration::from_secs(600);

/// Line of the file that `--json` writes.
#[derive(Serialize)]
struct Line<'a> {
    mutant: &'a str,
    origin: &'a str,
    convicted: bool,
    invariant: Option<String>,
    detail: Option<String>,
    system: Option<String>,
    systems: u64,
    seconds: f64,
}

/// Systems that each mutant is tried with, and the file for the outcome.
pub(super) struct Extent<'a> {
    pub(super) seed: u64,
    pub(super) first: u64,
    pub(super) systems: Option<u64>,
    pub(super) time: Option<Duration>,
    pub(super) json: Option<&'a Path>,
}

/// Tries the mutants that are named, or all of them.
pub(super) fn execute(
    extent: &Extent<'_>,
    names: &[String],
    bounds: Bounds,
    cache: &Cache,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let root = root(&system::installed::command());
    let root = root.ok_or_else(|| {
        Failure::Usage(String::from(
            "mutants are built from the sources, and this command does not lie in their folder",
        ))
    })?;
    let unmade = |error: &dyn std::fmt::Display| Failure::Unmade(error.to_string());
    let mutants = Mutant::read_all(&root.join(MUTANTS), names);
    let mutants = mutants.map_err(|error| Failure::Usage(error.to_string()))?;
    let tree = Tree::copy(&root, &root.join(PLACE)).map_err(|error| unmade(&error))?;
    let sound = tree.build_sound().map_err(|error| unmade(&error))?;
    let trial = MutantTrial {
        seed: extent.seed,
        first: extent.first,
        systems: extent.systems,
        time: match (extent.systems, extent.time) {
            (None, None) => Some(TIME),
            (_, time) => time,
        },
        bounds,
        cache,
        stop,
    };
    let broken = try_sound(&sound, &trial)?;
    let mut broken = broken.iter();
    if let Some(violation) = broken.find(|one| one.invariant == Invariant::HypervisorGoesOn) {
        return Err(Failure::Unmade(format!(
            "the hypervisor without a fault does not run: {}",
            violation.detail
        )));
    }
    let mut tried = Vec::new();
    let mut unbuilt = Vec::new();
    let mut ended = Ok(());
    for mutant in mutants {
        let built = match tree.build_mutant(&mutant) {
            Ok(built) => built,
            Err(error) => {
                output::say_line(format_args!("{:<36} {error}", mutant.name));
                unbuilt.push(mutant.name);
                continue;
            }
        };
        let hypervisors = Hypervisors {
            mutant: &built,
            sound: &sound,
        };
        let outcome = try_mutant(hypervisors, &trial);
        // A mutant's file would be taken for a hypervisor by mistake.
        let _ = std::fs::remove_file(&built);
        match outcome {
            Ok(outcome) => {
                say(&mutant, &outcome);
                tried.push((mutant, outcome));
            }
            // What was tried before is shown and written all the same.
            Err(error) => {
                ended = Err(error);
                break;
            }
        }
    }
    show(&tried);
    if let Some(path) = &extent.json {
        let lines = tried.iter().map(|(mutant, outcome)| line(mutant, outcome));
        write_json(path, &lines.collect::<Vec<_>>())?;
    }
    ended?;
    if !unbuilt.is_empty() {
        let names = unbuilt.join(", ");
        return Err(Failure::Unmade(format!(
            "these mutants could not be built: {names}"
        )));
    }
    match tried.len() - convicted(&tried) {
        0 => Ok(()),
        count => Err(Failure::Survivors(count)),
    }
}

const fn is_convicted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Convicted { .. })
}

/// Root of the sources that the command was built from.
fn root(command: &Path) -> Option<PathBuf> {
    let mut above = command.ancestors().skip(1);
    let root = above.find(|folder| folder.join(HYPERVISOR_CRATE).is_file());
    root.map(Path::to_path_buf)
}

fn line<'a>(mutant: &'a Mutant, outcome: &Outcome) -> Line<'a> {
    let (invariant, detail, system) = match outcome {
        Outcome::Convicted {
            invariant,
            detail,
            system,
            ..
        } => (
            Some(invariant.map_or_else(|| String::from("refuses"), |one| one.to_string())),
            Some(detail.clone()),
            Some(system.clone()),
        ),
        Outcome::Survived { .. } => (None, None, None),
    };
    let (Outcome::Convicted { systems, time, .. } | Outcome::Survived { systems, time }) = outcome;
    Line {
        mutant: &mutant.name,
        origin: &mutant.origin,
        convicted: is_convicted(outcome),
        invariant,
        detail,
        system,
        systems: *systems,
        seconds: time.as_secs_f64(),
    }
}

fn say(mutant: &Mutant, outcome: &Outcome) {
    let Line {
        invariant,
        detail,
        system,
        systems,
        seconds,
        ..
    } = line(mutant, outcome);
    let text = match (invariant, detail, system) {
        (Some(invariant), Some(detail), Some(system)) => {
            format!("{invariant} in {system}: {detail}")
        }
        _ => String::from("survives"),
    };
    output::say_line(format_args!(
        "{:<36} {systems:>5} systems {seconds:>6.1} s  {text}",
        mutant.name
    ));
}

fn convicted(tried: &[(Mutant, Outcome)]) -> usize {
    let convicted = tried.iter().filter(|(_, outcome)| is_convicted(outcome));
    convicted.count()
}

fn show(tried: &[(Mutant, Outcome)]) {
    let mut table = Table::new(["invariant", "mutants"]);
    let mut by_invariant = std::collections::BTreeMap::<String, usize>::new();
    for (mutant, outcome) in tried {
        let invariant = line(mutant, outcome).invariant;
        let invariant = invariant.unwrap_or_else(|| String::from("(survived)"));
        *by_invariant.entry(invariant).or_default() += 1;
    }
    for (invariant, count) in by_invariant {
        table.row([invariant, count.to_string()]);
    }
    output::say(format_args!(
        "\n{table}\n{} of {} mutants convicted\n",
        convicted(tried),
        tried.len()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_from_their_command() {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("target/debug/partita");
        assert_eq!(root(&command), None);
        std::fs::create_dir_all(folder.path().join("crates/hypervisor")).unwrap();
        std::fs::write(folder.path().join(HYPERVISOR_CRATE), "").unwrap();
        assert_eq!(root(&command), Some(folder.path().to_path_buf()));
    }
}
