//! `partita diff`.

use super::failure::{Failure, at};
use super::laboratory::EffectArguments;
use super::output::{self, write_json};
use runner::measures;
use std::path::{Path, PathBuf};
use study::laboratory::Recorded;
use study::laboratory::diff::diff;

#[derive(Debug, clap::Args)]
pub(super) struct DiffArguments {
    /// A report that `run`, `compare`, `sweep` or `paper` wrote with --json, or a file of results
    #[arg(value_name = "FIRST.json")]
    first: PathBuf,
    /// The same, made later or by another build
    #[arg(value_name = "SECOND.json")]
    second: PathBuf,
    /// The measures to compare; without it, all
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    measure: Vec<String>,
    /// Writes what differs as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    effect: EffectArguments,
}

pub(super) fn execute(arguments: &DiffArguments) -> Result<(), Failure> {
    output::check([arguments.json.as_ref()])?;
    for name in &arguments.measure {
        measures::known(name).map_err(Failure::Measure)?;
    }
    let (first, second) = (read(&arguments.first)?, read(&arguments.second)?);
    let smallest = arguments.effect.smallest();
    let found = diff(&first, &second, &arguments.measure, smallest);
    output::say(format_args!("{}", found.show()));
    match &arguments.json {
        Some(path) => write_json(path, &found),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<Vec<Recorded>, Failure> {
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    Recorded::read(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}
