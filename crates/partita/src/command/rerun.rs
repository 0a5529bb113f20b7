//! `partita rerun`.

use super::failure::{Failure, at};
use super::laboratory::{Laboratory, LaboratoryArguments};
use super::output;
use std::path::{Path, PathBuf};
use study::laboratory::{Computer, Entry, Point, Recorded, SeriesError, differences};

#[derive(Debug, clap::Args)]
pub(super) struct RerunArguments {
    /// A report that `run --json`, `compare --json` or a series wrote
    #[arg(value_name = "REPORT")]
    report: PathBuf,
    /// Repeats the runs alone whose hash begins so; the column `run` of `--tidy` has the hashes. May be given many times
    #[arg(long, value_name = "HASH")]
    run: Vec<String>,
    /// The system file, where it is not found by its recorded path from here or from the report's folder
    #[arg(long, value_name = "SYSTEM.toml")]
    system: Option<PathBuf>,
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

pub(super) fn execute(arguments: &RerunArguments) -> Result<(), Failure> {
    let path = &arguments.report;
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    let recorded = Recorded::read(&text)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let recorded = chosen(recorded, arguments)?;
    if recorded
        .iter()
        .any(|run| run.point.computer == Computer::Qemu)
    {
        return Err(Failure::Usage(format!(
            "{}: runs on QEMU take real time, and no two are alike; only the machine's can be repeated digit by digit",
            path.display()
        )));
    }
    // Nothing that was kept may answer for a run.
    let fresh = tempfile::tempdir().map_err(at(path))?;
    let mut laboratory = LaboratoryArguments::clone(&arguments.laboratory);
    // A record is repeated whole.
    laboratory.shard = None;
    laboratory.results = Some(fresh.path().join("rerun.jsonl"));
    let find = |run: &Recorded| -> Result<Point, Failure> {
        let system = find_system(&run.point.system, arguments)?;
        Ok(Point {
            system,
            ..run.point.clone()
        })
    };
    let points = recorded.iter().map(find).collect::<Result<_, _>>()?;
    let entries = match Laboratory::new(&laboratory, "rerun")?.run(points) {
        // What was made so far goes with this command, so that there is nothing to go on from.
        Err(Failure::Series(SeriesError::BrokenOff { done, all, .. })) => {
            return Err(Failure::Series(SeriesError::Lost { done, all }));
        }
        other => other?,
    };

    let mut different = Vec::new();
    for (then, now) in recorded.iter().zip(&entries) {
        let found = differing(then, now);
        if let Some(found) = found {
            different.push(found);
        }
    }
    if different.is_empty() {
        let runs = entries.len();
        output::say_line(format_args!(
            "{runs} of {runs} runs are equal to the last digit"
        ));
        return Ok(());
    }
    Err(Failure::Different(different.join("\npartita: ")))
}

/// The runs that are asked for: those whose hashes begin as one of the arguments, or all.
///
/// # Errors
/// An argument is no hash, or no run's.
fn chosen(recorded: Vec<Recorded>, arguments: &RerunArguments) -> Result<Vec<Recorded>, Failure> {
    if arguments.run.is_empty() {
        return Ok(recorded);
    }
    let hashes = recorded.iter().map(|run| run.point.identity(&run.made_by));
    let hashes: Vec<String> = hashes.map(|hash| hash.to_string()).collect();
    let is_of = |hash: &String, wanted: &String| !wanted.is_empty() && hash.starts_with(wanted);
    for wanted in &arguments.run {
        if !hashes.iter().any(|hash| is_of(hash, wanted)) {
            return Err(Failure::Usage(format!(
                "{}: no run's hash begins with {wanted:?}; the column `run` of `--tidy` has the hashes",
                arguments.report.display()
            )));
        }
    }
    let is_chosen = |hash: &String| arguments.run.iter().any(|wanted| is_of(hash, wanted));
    let chosen = recorded
        .into_iter()
        .zip(&hashes)
        .filter(|(_, hash)| is_chosen(hash));
    Ok(chosen.map(|(run, _)| run).collect())
}

/// Where a recorded system file is: by its recorded path from here, from the report's folder and those that it lies in, and
/// from the tree that this command was built in.
fn find_system(system: &Path, arguments: &RerunArguments) -> Result<PathBuf, Failure> {
    if let Some(given) = &arguments.system {
        return Ok(given.clone());
    }
    let report = arguments.report.canonicalize().unwrap_or_default();
    let command = std::env::current_exe().unwrap_or_default();
    let folders = report
        .ancestors()
        .skip(1)
        .chain(command.ancestors().skip(1));
    std::iter::once(PathBuf::new())
        .chain(folders.map(PathBuf::from))
        .map(|folder| folder.join(system))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Failure::Usage(format!(
                "{}: there is no {} here, nor beside the report; go where it is, or name it with --system",
                arguments.report.display(),
                system.display()
            ))
        })
}

/// Compares one run with its record, and describes the differences, if there are any.
fn differing(then: &Recorded, now: &Entry) -> Option<String> {
    let makers = then.made_by.differences(&now.made_by);
    if !makers.is_empty() {
        output::say_line(format_args!(
            "seed {}: not made by the same: {}",
            then.point.seed,
            makers.join(", ")
        ));
    }
    let found = differences(then, now);
    if found.is_empty() {
        return None;
    }
    let label = then.point.changes.join(" ");
    Some(format!(
        "seed {} {label}: the run diverges from its record:\n  {}",
        then.point.seed,
        found.join("\n  ")
    ))
}
