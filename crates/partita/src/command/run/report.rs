//! The report as JSON, with what made it.

use super::RunArguments;
use super::arguments::point;
use crate::command::failure::Failure;
use crate::command::output::write_json;
use runner::document::RunDocument;
use std::path::Path;
use study::laboratory::{MadeBy, Point, RunReport};
use system::cache::Cache;
use system::fingerprint::Fingerprints;

/// Stands below the measures.
pub(super) const EXPLAIN: &str = "What a measure means: partita run SYSTEM.toml --explain NAME\n";

/// Writes a run's document, with what made it.
pub(super) fn write_report(
    arguments: &RunArguments,
    cache: &Cache,
    path: &Path,
    document: RunDocument,
) -> Result<(), Failure> {
    let makers = match arguments.without_makers {
        true => None,
        false => Some(makers(arguments, cache)?),
    };
    let (point, made_by) = makers.unzip();
    let report = RunReport {
        document,
        point,
        made_by,
    };
    write_json(path, &report)
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
