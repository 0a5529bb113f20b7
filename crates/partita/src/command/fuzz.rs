//! `partita fuzz`.

mod coverage;
mod mutants;

use super::failure::{Failure, at};
use super::input::HypervisorArgument;
use super::output::{self, write_json};
use fuzz::code::{Code, Covered};
use fuzz::farm::{self, Plan, Tried};
use fuzz::finding::Finding;
use fuzz::judge::{Bounds, Violation};
use fuzz::observe::{CaseError, Programs};
use fuzz::shrink::shrink;
use runner::table::Table;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use study::laboratory::shard::Shard;
use system::cache::Cache;

#[derive(Debug, clap::Args)]
pub(super) struct FuzzArguments {
    /// Seed of the systems
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// How many systems are tried; 10 without --hours
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    systems: Option<u64>,
    /// Number of the first system
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first: u64,
    /// Goes on for so many hours of the host's time, such as 0.5
    #[arg(long, value_name = "NUMBER", value_parser = hours)]
    hours: Option<f64>,
    /// Systems that run at once
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    jobs: usize,
    /// Tries this part of the systems alone, such as 2/4 for the second of four
    #[arg(long, value_name = "NUMBER/ALL")]
    shard: Option<Shard>,
    /// Folder for the findings
    #[arg(long, value_name = "FOLDER", default_value = "findings")]
    findings: PathBuf,
    /// Least part of its promised share that the witness has
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().share)]
    share: f64,
    /// Longest stretch in the hypervisor, in microseconds of machine time
    #[arg(long, value_name = "NUMBER", default_value_t = Bounds::default().stretch_us)]
    stretch_us: f64,
    /// Tries for a smaller system that breaks the same invariant, for each finding; 0 keeps it as it was drawn
    #[arg(long, value_name = "NUMBER", default_value_t = 80)]
    shrink: usize,
    /// Runs the case of a finding again
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["systems", "hours", "shard", "first", "seed"])]
    replay: Option<PathBuf>,
    /// Shows which places of the hypervisor's code were reached by jumps, by module
    #[arg(long, conflicts_with_all = ["replay", "mutants"])]
    coverage: bool,
    /// Keeps the systems that reach new places in this folder, and tries mutations of them beside new ones, one at a time; shows what
    /// --coverage does
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["replay", "mutants", "jobs", "shard"])]
    corpus: Option<PathBuf>,
    /// Puts faults into a copy of the hypervisor, one at a time, and tries for each whether the farm finds it: the faults that are named, or
    /// all of crates/fuzz/mutants. --systems and --hours then hold for each; 10 minutes without them
    #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with_all = ["replay", "shard", "elf"])]
    mutants: Option<Vec<String>>,
    /// Writes the systems with what they broke as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    hypervisor: HypervisorArgument,
}

impl FuzzArguments {
    /// Time in which systems are begun.
    fn time(&self) -> Option<Duration> {
        let hours = self.hours?;
        Some(Duration::from_secs_f64(hours * 3600.0))
    }
}

/// A number of hours.
fn hours(text: &str) -> Result<f64, String> {
    let hours: f64 = text.parse().map_err(|_| String::from("give a number"))?;
    match hours > 0.0 && hours <= 10_000.0 {
        true => Ok(hours),
        false => Err(String::from("give more than 0 and at most 10000")),
    }
}

/// Systems without `--systems` and `--hours`.
const SYSTEMS: u64 = 10;

pub(super) fn execute(arguments: &FuzzArguments) -> Result<(), Failure> {
    output::check([arguments.json.as_ref()])?;
    if arguments.replay.is_none() && arguments.mutants.is_none() {
        output::check_folder(&arguments.findings)?;
    }
    let cache = Cache::made()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::Host("signals", error))?;
    }
    let bounds = Bounds {
        share: arguments.share,
        stretch_us: arguments.stretch_us,
    };
    if let Some(names) = &arguments.mutants {
        let extent = mutants::Extent {
            seed: arguments.seed,
            first: arguments.first,
            systems: arguments.systems,
            time: arguments.time(),
            json: arguments.json.as_deref(),
        };
        return mutants::execute(&extent, names, bounds, &cache, &stop);
    }
    let hypervisor = arguments.hypervisor.path()?;
    let code = match arguments.coverage || arguments.corpus.is_some() {
        true => Some(code(&hypervisor)?),
        false => None,
    };
    let programs = Programs {
        hypervisor: &hypervisor,
        cache: &cache,
        stop: &stop,
        code: code.as_ref(),
    };
    let mut tally = Tally::new(arguments.json.is_some());
    let mut keep = Ok(());
    match &arguments.replay {
        Some(folder) => {
            let finding = Finding::read(folder).map_err(at(folder))?;
            let tried = farm::attempt(finding.case, programs, bounds)?;
            for line in &tried.observed.lines {
                output::say_line(format_args!("{line}"));
            }
            tally.take(&tried);
        }
        None => {
            let plan = plan(arguments, bounds);
            let mut take = |tried: Tried| {
                tally.take(&tried);
                if keep.is_ok() && !tried.finding.violations.is_empty() {
                    keep = keep_finding(arguments, programs, bounds, tried);
                }
            };
            match &arguments.corpus {
                None => farm::run(&plan, programs, &mut take)?,
                Some(folder) => {
                    let corpus = farm::run_guided(&plan, folder, programs, &mut |tried, new| {
                        take(tried);
                        if new > 0 {
                            output::say_line(format_args!("  {new} new places"));
                        }
                    })?;
                    output::say_line(format_args!("\n{} systems in the corpus", corpus.count()));
                }
            }
        }
    }
    tally.show();
    if let Some(code) = &code {
        coverage::show(code, &tally.covered);
    }
    if let Some(path) = &arguments.json {
        write_json(path, &tally.tried.as_deref().unwrap_or_default())?;
    }
    keep?;
    match tally.found {
        0 if stop.load(std::sync::atomic::Ordering::Relaxed) => Err(Failure::Interrupted),
        0 => Ok(()),
        count => Err(Failure::Findings(count)),
    }
}

/// The hypervisor's code.
fn code(hypervisor: &std::path::Path) -> Result<Code, Failure> {
    let file = std::fs::read(hypervisor).map_err(at(hypervisor))?;
    Code::read(&file).map_err(|error| Failure::Usage(error.to_string()))
}

/// Writes a finding as it was drawn, then as small as it becomes.
fn keep_finding(
    arguments: &FuzzArguments,
    programs: Programs<'_>,
    bounds: Bounds,
    tried: Tried,
) -> Result<(), Failure> {
    let folder = &arguments.findings;
    let write = |tried: &Tried| {
        let written = tried.finding.write(folder, &tried.observed);
        written.map_err(at(folder))
    };
    let page = write(&tried)?.join("finding.md");
    match shrink(tried, programs, bounds, arguments.shrink) {
        Ok(least) => write(&least).map(|_| ())?,
        // What was drawn is there already.
        Err(CaseError::BrokenOff) => {}
        Err(error) => return Err(error.into()),
    }
    output::say_line(format_args!("  {}", page.display()));
    Ok(())
}

fn plan(arguments: &FuzzArguments, bounds: Bounds) -> Plan {
    let (part, parts) = arguments.shard.map_or((0, 1), Shard::part);
    Plan {
        seed: arguments.seed,
        first: arguments.first,
        systems: match (arguments.systems, arguments.hours) {
            (None, None) => Some(SYSTEMS),
            (systems, _) => systems,
        },
        time: arguments.time(),
        jobs: arguments.jobs,
        shard: (part, parts),
        bounds,
    }
}

/// Counts of all that was tried.
struct Tally {
    begun: Instant,
    /// How many systems were tried.
    systems: u64,
    /// The systems, if they are to be written at the end: a farm of many hours keeps none otherwise.
    tried: Option<Vec<Finding>>,
    found: usize,
    exits: u64,
    /// Places that some system reached, where that is asked.
    covered: Covered,
    /// Findings by invariant.
    broken: BTreeMap<String, usize>,
    /// Exercises that were tried.
    exercises: BTreeMap<String, usize>,
    longest: (f64, String),
    least_share: Option<f64>,
}

impl Tally {
    fn new(keep: bool) -> Self {
        Self {
            begun: Instant::now(),
            systems: 0,
            tried: keep.then(Vec::new),
            found: 0,
            exits: 0,
            covered: Covered::default(),
            broken: BTreeMap::new(),
            exercises: BTreeMap::new(),
            longest: (0.0, String::new()),
            least_share: None,
        }
    }

    fn take(&mut self, tried: &Tried) {
        let Tried { finding, observed } = tried;
        self.exits += observed.exits;
        if let Some(covered) = &observed.covered {
            self.covered.add(covered);
        }
        for vm in finding.case.hostile() {
            *self
                .exercises
                .entry(vm.program.exercise.clone())
                .or_default() += 1;
        }
        if let Some((microseconds, place)) = &observed.longest_stretch
            && *microseconds > self.longest.0
        {
            self.longest = (*microseconds, format!("{}, to {place}", finding.name()));
        }
        if let Some(part) = observed.part_of_share(&finding.case) {
            let least = self.least_share.unwrap_or(f64::MAX);
            self.least_share = Some(least.min(part));
        }
        let what = match &finding.violations[..] {
            [] => String::from("holds"),
            violations => violations
                .iter()
                .map(|Violation { invariant, detail }| format!("{invariant}: {detail}"))
                .collect::<Vec<_>>()
                .join("; "),
        };
        let programs: Vec<&str> = finding
            .case
            .hostile()
            .map(|vm| vm.program.exercise.as_str())
            .collect();
        output::say_line(format_args!(
            "{:<10} {:<24} {:>8} exits  {}  {what}",
            finding.name(),
            programs.join("+"),
            observed.exits,
            finding.fingerprint.get(..12).unwrap_or_default(),
        ));
        if !finding.violations.is_empty() {
            self.found += 1;
            for violation in &finding.violations {
                *self
                    .broken
                    .entry(violation.invariant.to_string())
                    .or_default() += 1;
            }
        }
        self.systems += 1;
        if let Some(tried) = &mut self.tried {
            tried.push(finding.clone());
        }
    }

    fn show(&self) {
        let mut table = Table::new(["exercise", "guests"]);
        for (exercise, count) in &self.exercises {
            table.row([exercise.clone(), count.to_string()]);
        }
        output::say(format_args!("\n{table}"));
        if !self.broken.is_empty() {
            let mut table = Table::new(["invariant", "broken"]);
            for (invariant, count) in &self.broken {
                table.row([invariant.clone(), count.to_string()]);
            }
            output::say(format_args!("\n{table}"));
        }
        let (microseconds, place) = &self.longest;
        let share = self.least_share.map_or_else(
            || String::from("-"),
            |part| format!("{:.1} %", 100.0 * part),
        );
        output::say(format_args!(
            "\n{} systems, {} with findings; {} exits of hostile guests\n\
             longest stretch in the hypervisor: {microseconds:.1} us ({place})\n\
             least part of its promised share that a witness had: {share}\n",
            self.systems, self.found, self.exits,
        ));
        let seconds = self.begun.elapsed().as_secs_f64();
        output::note(format_args!(
            "{seconds:.1} s, {:.0} exits a second",
            self.exits as f64 / seconds.max(0.001)
        ));
    }
}
