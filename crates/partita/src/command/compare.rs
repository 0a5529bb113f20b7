//! `partita compare`.

use super::laboratory::{EffectArguments, Laboratory, LaboratoryArguments, StartArguments};
use super::random::{self, RandomArguments};
use super::{Failure, SystemArguments, output, write_json};
use runner::measures;
use std::io::Write;
use std::path::PathBuf;
use study::compare::{Comparison, Grid, KEYS, Variation};
use study::nuisance::{self, Variance, design};

/// Start phases unless it is said otherwise.
const SEEDS: u32 = 10;

#[derive(Debug, clap::Args)]
pub(super) struct CompareArguments {
    /// The system's TOML file
    #[arg(value_name = "SYSTEM.toml", required_unless_present = "random")]
    file: Option<PathBuf>,
    /// Changes a key for this time, such as vm.web.share=30; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) changes: Vec<String>,
    #[command(flatten)]
    pub(super) random: RandomArguments,
    #[arg(long, value_name = "KEY=A,B,...", help = format!("Varies a key, such as spin=wopd,wapd; may be given many times: profile (the machine's), hypervisor (its ELF file), {KEYS}"))]
    pub(super) vary: Vec<String>,
    /// How many start phases each combination is run with; without it 10, with --nuisance as many as the design has, with
    /// --random 1
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) seeds: Option<u32>,
    /// Varies nuisance factors from phase to phase, all of them or those that are named, and shows which share of the spread each
    /// makes: boot-offset, slice-phase, vm-order, placement, link-order, costs (those that the profile marks as estimates)
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", conflicts_with = "random", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    nuisance: Vec<String>,
    /// The measures to show; without it, the usual ones
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        conflicts_with = "random"
    )]
    measure: Vec<String>,
    /// Writes the comparison and all runs as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Writes the comparison as comma-separated values
    #[arg(long, value_name = "FILE", conflicts_with = "random")]
    csv: Option<PathBuf>,
    /// Writes every figure of every run as a line of its own: comma-separated values, or Parquet where the file's name ends in .parquet;
    /// may be given many times
    #[arg(long, value_name = "FILE")]
    pub(super) tidy: Vec<PathBuf>,
    /// Draws the comparison: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    #[command(flatten)]
    effect: EffectArguments,
    #[command(flatten)]
    start: StartArguments,
    #[command(flatten)]
    pub(super) laboratory: LaboratoryArguments,
}

/// What `--vary` says.
pub(super) fn variations(vary: &[String]) -> Result<Vec<Variation>, Failure> {
    let each = vary.iter().map(|text| Variation::parse(text));
    Ok(each.collect::<Result<_, _>>()?)
}

pub(super) fn execute(arguments: &CompareArguments) -> Result<(), Failure> {
    let Some(file) = &arguments.file else {
        return random::execute(arguments);
    };
    let system = SystemArguments {
        file: file.clone(),
        changes: arguments.changes.clone(),
    };
    let computer = arguments.laboratory.computer()?;
    let variations = variations(&arguments.vary)?;
    let mut grid = Grid::new(&variations, arguments.seeds.unwrap_or(SEEDS), &computer)?;
    for name in &arguments.measure {
        measures::explain(name).map_err(Failure::Measure)?;
    }
    let outputs = [&arguments.json, &arguments.csv, &arguments.report];
    output::check(outputs.map(Option::as_ref))?;
    output::check(arguments.tidy.iter().map(Some))?;
    system.read()?;
    let name = format!("compare-{}", super::stem(file));
    let laboratory = Laboratory::new(&arguments.laboratory, &name)?;
    let mut points = grid.points(file, &system.changes, &computer);
    let mut factors = Vec::new();
    if !arguments.nuisance.is_empty() {
        let first = laboratory.expand(points.iter().take(1).cloned().collect())?;
        let Some(first) = first.first() else {
            return Ok(());
        };
        factors = nuisance::factors(&points, first, &arguments.nuisance)?;
        let design = u32::try_from(design::phases(factors.len())).unwrap_or(u32::MAX);
        grid = Grid::new(&variations, arguments.seeds.unwrap_or(design), &computer)?;
        points = grid.points(file, &system.changes, &computer);
        points = nuisance::vary(points, &factors);
    }
    let points = laboratory.start(
        laboratory.expand(points)?,
        &arguments.start.booting(!factors.is_empty()),
    )?;
    let entries = laboratory.run(points)?;

    let comparison = Comparison::new(&grid, &entries, arguments.effect.smallest());
    let variances = comparison.variances(&entries, &arguments.measure, &factors);
    // What goes to standard output for programs goes there alone.
    let files = outputs.iter().filter_map(|path| path.as_ref());
    if !output::has_standard(files.chain(&arguments.tidy)) {
        show(&comparison, &variances, &arguments.measure);
    }
    if let Some(path) = &arguments.json {
        let whole = serde_json::json!({ "comparison": comparison, "variances": variances, "runs": entries });
        write_json(path, &whole)?;
    }
    if let Some(path) = &arguments.csv {
        output::write(path, comparison.csv().as_bytes())?;
    }
    output::write_tidy(&arguments.tidy, &entries)?;
    if let Some(path) = &arguments.report {
        let title = format!("Comparison of {}", file.display());
        let page = study::pages::comparison(
            &title,
            &comparison,
            &variances,
            &entries,
            &arguments.measure,
        );
        output::write(path, page.as_bytes())?;
    }
    let failures = comparison.rows.iter().flat_map(|row| {
        let label = row.combination.label();
        let say = move |(seed, why): &(u64, String)| format!("{label}, seed {seed}: {why}");
        row.failures.iter().map(say)
    });
    let failures: Vec<String> = failures.collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::Vm(failures))
    }
}

fn show(comparison: &Comparison, variances: &[Variance], wanted: &[String]) {
    let mut out = std::io::stdout().lock();
    let names: Vec<&str> = if wanted.is_empty() {
        let usual = comparison.measures();
        usual
            .into_iter()
            .filter(|name| measures::USUAL.contains(name))
            .collect()
    } else {
        wanted.iter().map(String::as_str).collect()
    };
    for name in &names {
        // A reader that has gone needs no table.
        let verdict = comparison
            .verdict(name)
            .map_or_else(String::new, |line| line + "\n");
        let _ = writeln!(out, "{}{verdict}", comparison.table(name));
        for variance in variances.iter().filter(|one| one.measure == *name) {
            let _ = writeln!(out, "{}", variance.show());
        }
    }
    let _ = writeln!(out, "{}", comparison.legend(&names));
}
