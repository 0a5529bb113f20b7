//! `partita bench`.

use super::failure::{Failure, at};
use super::input::HypervisorArgument;
use super::output::{self, write_json};
use crate::bench::{self, Amount, Options, Way};
use clap::ValueEnum;
use guest_images::Progress;
use std::path::{Path, PathBuf};
use system::cache::Cache;

/// The lines of a document between which the tables stand.
const BEGIN: &str = "<!-- partita bench: begin -->";
const END: &str = "<!-- partita bench: end -->";
/// Lines around the table of exit latencies.
const EXIT_LATENCY_BEGIN: &str = "<!-- partita bench --exit-latency: begin -->";
const EXIT_LATENCY_END: &str = "<!-- partita bench --exit-latency: end -->";
/// Lines around the tables of vector code.
const VECTORS_BEGIN: &str = "<!-- partita bench --vectors: begin -->";
const VECTORS_END: &str = "<!-- partita bench --vectors: end -->";
/// How often everything is counted.
const RUNS: u16 = 3;

#[derive(Debug, clap::Args)]
pub(super) struct BenchArguments {
    /// Writes the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Puts the tables into this document, between the lines that mark their place
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// Does less work, once
    #[arg(long)]
    quick: bool,
    /// How often everything is counted; without it three times, with --quick once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// Measures the exit latency alone: instructions and cycles of exits and dispatches
    #[arg(long, conflicts_with_all = ["quick", "runs", "on"])]
    exit_latency: bool,
    /// Measures vector code alone: natively, under Partita and under KVM, on the machine
    #[arg(long, conflicts_with_all = ["quick", "runs", "on", "exit_latency"])]
    vectors: bool,
    /// Counts on these alone
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WAY")]
    on: Vec<BenchWay>,
    #[command(flatten)]
    hypervisor: HypervisorArgument,
}

/// Ways to run a guest whose instructions are counted.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum BenchWay {
    /// By itself
    Native,
    /// Under Partita
    Partita,
    /// Under KVM, with QEMU
    Kvm,
}

pub(super) fn execute(arguments: &BenchArguments) -> Result<(), Failure> {
    output::check([arguments.json.as_ref(), arguments.document.as_ref()])?;
    let cache = Cache::made()?;
    let hypervisor = arguments.hypervisor.path()?;
    if arguments.vectors {
        return vectors(arguments, &cache, &hypervisor);
    }
    let exit_latency = bench::measure_exit_latency(&cache, &hypervisor, &Progress::new())?;
    output::say_line(format_args!("{exit_latency}"));
    if let Some(path) = &arguments.document {
        write_document(path, &exit_latency, EXIT_LATENCY_BEGIN, EXIT_LATENCY_END)?;
    }
    if arguments.exit_latency {
        return match &arguments.json {
            Some(path) => write_json(path, &exit_latency),
            None => Ok(()),
        };
    }
    let mut ways: Vec<Way> = arguments.on.iter().map(|way| (*way).into()).collect();
    if ways.is_empty() {
        ways.extend(Way::ALL);
    }
    let (amount, runs) = match arguments.quick {
        true => (Amount::QUICK, 1),
        false => (Amount::WHOLE, RUNS),
    };
    let options = Options {
        amount,
        runs: arguments.runs.unwrap_or(runs).into(),
        ways,
        hypervisor,
    };
    let report = bench::measure(&cache, &options, &Progress::new())?;
    output::say(format_args!("{report}"));
    if let Some(path) = &arguments.json {
        write_json(path, &report)?;
    }
    if let Some(path) = &arguments.document {
        write_document(path, &report, BEGIN, END)?;
    }
    Ok(())
}

/// Measures vector code.
fn vectors(arguments: &BenchArguments, cache: &Cache, hypervisor: &Path) -> Result<(), Failure> {
    let report = bench::measure_vectors(cache, hypervisor, &Progress::new())?;
    output::say(format_args!("{report}"));
    if let Some(path) = &arguments.document {
        write_document(path, &report, VECTORS_BEGIN, VECTORS_END)?;
    }
    match &arguments.json {
        Some(path) => write_json(path, &report),
        None => Ok(()),
    }
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

fn write_document(
    path: &Path,
    report: &impl std::fmt::Display,
    begin: &'static str,
    end: &'static str,
) -> Result<(), Failure> {
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    let missing = |line| Failure::NoPlace {
        path: path.to_owned(),
        line,
    };
    let (before, rest) = text.split_once(begin).ok_or_else(|| missing(begin))?;
    let (_, after) = rest.split_once(end).ok_or_else(|| missing(end))?;
    let new = format!("{before}{begin}\n```\n{report}```\n{end}{after}");
    output::write(path, new.as_bytes())
}
