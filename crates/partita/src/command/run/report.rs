//! The report as JSON, with what made it.

use super::RunArguments;
use super::arguments::point;
use crate::command::failure::Failure;
use crate::command::output::write_json;
use runner::run;
use runner::storms::{Held, Storms};
use std::collections::BTreeMap;
use std::path::Path;
use study::laboratory::{MadeBy, Point};
use system::cache::Cache;
use system::fingerprint::Fingerprints;

/// Stands below the measures.
pub(super) const EXPLAIN: &str = "What a measure means: partita run SYSTEM.toml --explain NAME\n";

/// The exits of each pause loop, by the address of its PAUSE.
pub(super) fn pause_loops(outcome: &run::Outcome) -> BTreeMap<String, u64> {
    let loops = outcome.storms.iter().flat_map(|storms| &storms.loops);
    loops
        .map(|(pause, exits)| (format!("{pause:#x}"), *exits))
        .collect()
}

/// The locks that were held for the longest time in all, by the physical address of their word.
pub(super) fn locks(storms: Option<&Storms>) -> BTreeMap<String, Held> {
    /// So many.
    const SHOWN: usize = 64;
    let locks = storms.map(|storms| storms.most_held(SHOWN));
    let locks = locks.into_iter().flatten();
    locks
        .map(|(word, held)| (format!("{word:#x}"), held))
        .collect()
}

/// Writes a report, with these parts of it and with what made it.
pub(super) fn write_report(
    arguments: &RunArguments,
    cache: &Cache,
    path: &Path,
    mut whole: serde_json::Value,
    parts: &[(&str, serde_json::Value)],
) -> Result<(), Failure> {
    if let Some(object) = whole.as_object_mut() {
        for (name, part) in parts {
            object.insert(String::from(*name), part.clone());
        }
        if !arguments.without_makers {
            let (point, made_by) = makers(arguments, cache)?;
            object.insert(String::from("point"), to_json(path, &point)?);
            object.insert(String::from("made-by"), to_json(path, &made_by)?);
        }
    }
    write_json(path, &whole)
}

/// All that this run's result follows from, so that `partita rerun` can repeat it.
fn makers(arguments: &RunArguments, cache: &Cache) -> Result<(Point, MadeBy), Failure> {
    let point = point(arguments);
    let hypervisor = arguments.hypervisor.path()?;
    let command = std::env::current_exe().unwrap_or_default();
    let programs = point.programs(&command, &hypervisor);
    let made_by = point.made_by(&programs, cache, &mut Fingerprints::new())?;
    Ok((point, made_by))
}

pub(super) fn to_json(
    path: &Path,
    value: &impl serde::Serialize,
) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::File {
        path: path.to_owned(),
        error: error.into(),
    })
}
