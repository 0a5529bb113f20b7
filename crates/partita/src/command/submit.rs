//! `partita submit`: a series for a cluster's scheduler.
//!
//! Every task makes a shard and keeps its results in a file of its own. The last one puts the files together and shows the table, which is
//! that of one computer, as a run is the same everywhere.

mod kubernetes;
mod script;
mod slurm;

use super::failure::{Failure, at};
use super::output;
use script::Series;
use std::path::PathBuf;

/// Most tasks of an array: SLURM's `MaxArraySize` is 1001 unless an administrator sets another.
const MAX_TASKS: u32 = 100_000;

const EXAMPLES: &str = "Examples:
  partita submit --slurm --tasks 64 -- compare SYSTEM.toml --vary spin=wopd,wapd --seeds 100 --tidy runs.parquet | sh
  partita submit --slurm --tasks 64 --option=--time=60 --option=--mem=2G -- sweep SYSTEM.toml --over vms=1,2,3 | sh
  partita submit --kubernetes partita:0.2.0 --claim work --tasks 64 -- compare SYSTEM.toml --vary spin=wopd,wapd | kubectl apply -f -

A shard that is broken off is made again, and goes on where it was. All tasks need the same folder, the same build and the same images.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SubmitArguments {
    #[command(flatten)]
    scheduler: Scheduler,
    /// How many tasks share the runs
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TASKS)))]
    tasks: u32,
    /// Folder for the shards' results and logs, which all tasks see
    #[arg(long, value_name = "FOLDER", default_value = "partita-series")]
    folder: PathBuf,
    /// Name of the job
    #[arg(long, value_name = "NAME", default_value = "partita", value_parser = name)]
    name: String,
    /// The series: `compare` or `sweep` with its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    series: Vec<String>,
}

/// The scheduler, with what only one of the two takes.
#[derive(Debug, clap::Args)]
struct Scheduler {
    /// Writes a script that submits a job array and the table that depends on it, by `sbatch`
    #[arg(long, required_unless_present = "kubernetes")]
    slurm: bool,
    /// An option of `sbatch` for the tasks, such as --option=--time=60; may be given many times
    #[arg(long, value_name = "OPTION", requires = "slurm")]
    option: Vec<String>,
    /// Writes an indexed Job and the Job of the table, whose containers have this image
    #[arg(
        long,
        value_name = "IMAGE",
        conflicts_with = "slurm",
        requires = "claim"
    )]
    kubernetes: Option<String>,
    /// The persistent volume claim that all containers see as their working folder; the system file and --folder are in it
    #[arg(long, value_name = "NAME", requires = "kubernetes", value_parser = name)]
    claim: Option<String>,
    /// How many containers run at a time; without it, all
    #[arg(long, value_name = "NUMBER", requires = "kubernetes", value_parser = clap::value_parser!(u32).range(1..))]
    parallelism: Option<u32>,
}

/// A name that both schedulers take: a label of DNS (RFC 1123 §2.1) with room for an ending.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let good = (1..=50).contains(&text.len())
        && text.bytes().all(is_plain)
        && !text.starts_with('-')
        && !text.ends_with('-');
    match good {
        true => Ok(String::from(text)),
        false => Err(String::from(
            "use small letters, digits and hyphens, at most 50",
        )),
    }
}

/// Reads the words of a series, and returns its system file, if it has one.
type SystemFile = fn(&[String]) -> Result<Option<PathBuf>, Failure>;

/// Writes what the scheduler takes. `system_file` reads the words of the series.
///
/// # Errors
/// They are no series that can be placed, or the output cannot be written.
pub(super) fn execute(arguments: &SubmitArguments, system_file: SystemFile) -> Result<(), Failure> {
    check(&arguments.series, system_file)?;
    let text = match &arguments.scheduler.kubernetes {
        None => {
            let here = std::env::current_dir().map_err(|error| Failure::Host("folder", error))?;
            let command = std::env::current_exe()
                .map_err(|error| Failure::Host("this command's own file", error))?;
            let series = Series {
                command: command.display().to_string(),
                arguments: &arguments.series,
                folder: here.join(&arguments.folder).display().to_string(),
                tasks: arguments.tasks,
            };
            slurm::script(&series, &here, &arguments.name, &arguments.scheduler.option)
        }
        Some(image) => {
            let series = Series {
                command: String::from("partita"),
                arguments: &arguments.series,
                folder: arguments.folder.display().to_string(),
                tasks: arguments.tasks,
            };
            let claim = arguments.scheduler.claim.as_deref().unwrap_or_default();
            let parallelism = arguments.scheduler.parallelism.unwrap_or(arguments.tasks);
            kubernetes::jobs(&series, &arguments.name, image, claim, parallelism)
        }
    };
    if text.contains('\0') {
        return Err(Failure::Usage(String::from("an argument has a zero byte")));
    }
    let standard = PathBuf::from("-");
    output::check([Some(&standard)])?;
    output::write(&standard, text.as_bytes()).or_else(|_| output::shown())?;
    Ok(())
}

/// Checks that these words are a series whose shards this command can place.
fn check(words: &[String], system_file: SystemFile) -> Result<(), Failure> {
    let file = system_file(words)?;
    let Some(file) = file else {
        return Err(Failure::Usage(String::from(
            "drawn systems are made on one computer: give a system file",
        )));
    };
    let is_placed = |word: &&String| {
        let option = word.split('=').next().unwrap_or_default();
        option == "--shard" || option == "--results"
    };
    if let Some(word) = words.iter().find(is_placed) {
        return Err(Failure::Usage(format!(
            "leave {word} out: the script gives each task its shard and its file of results"
        )));
    }
    if let Some(word) = words.iter().find(|word| word.contains(['\n', '\r'])) {
        return Err(Failure::Usage(format!(
            "{word:?}: an argument has one line"
        )));
    }
    std::fs::metadata(&file).map_err(at(&file))?;
    Ok(())
}
