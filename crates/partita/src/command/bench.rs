//! `partita bench`.

use super::{BenchArguments, BenchWay, Failure, at, output, write_json};
use partita::bench::{self, Amount, Options, Report, Way};
use partita::cache::Cache;
use partita::images::Progress;
use std::io::Write;
use std::path::Path;

/// The lines of a document between which the tables stand.
const BEGIN: &str = "<!-- partita bench: begin -->";
const END: &str = "<!-- partita bench: end -->";
/// How often everything is counted.
const RUNS: u16 = 3;

pub(super) fn execute(arguments: &BenchArguments) -> Result<(), Failure> {
    let cache = Cache::from_environment()?;
    let mut ways: Vec<Way> = arguments.on.iter().map(|way| (*way).into()).collect();
    if ways.is_empty() {
        ways.extend(Way::ALL);
    }
    let (amount, runs) = match arguments.quick {
        true => (Amount::QUICK, 1),
        false => (Amount::WHOLE, RUNS),
    };
    output::check([arguments.json.as_ref(), arguments.document.as_ref()])?;
    let options = Options {
        amount,
        runs: arguments.runs.unwrap_or(runs).into(),
        ways,
        hypervisor: arguments.hypervisor.path()?,
    };
    let report = bench::measure(&cache, &options, &Progress::new())?;
    // A reader that has gone needs no table.
    let _ = write!(std::io::stdout(), "{report}");
    if let Some(path) = &arguments.json {
        write_json(path, &report)?;
    }
    if let Some(path) = &arguments.document {
        write_document(path, &report)?;
    }
    Ok(())
}

impl From<BenchWay> for Way {
    fn from(way: BenchWay) -> Self {
        match way {
            BenchWay::Native => Self::Native,
            BenchWay::Partita => Self::Partita,
            BenchWay::Kvm => Self::Kvm,
        }
    }
}

fn write_document(path: &Path, report: &Report) -> Result<(), Failure> {
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    let missing = |line| Failure::NoPlace {
        path: path.to_owned(),
        line,
    };
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    let new = format!("{before}{BEGIN}\n```\n{report}```\n{END}{after}");
    output::write(path, new.as_bytes())
}
