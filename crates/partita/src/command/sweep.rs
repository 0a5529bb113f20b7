//! `partita sweep`.

use super::failure::Failure;
use super::input::SystemArguments;
use super::laboratory::{EffectArguments, Laboratory, LaboratoryArguments, StartArguments};
use super::output::{self, write_json};
use runner::measures;
use std::path::PathBuf;
use study::compare::{Grid, KEYS, Variation};
use study::laboratory::tidy::Tidy;
use study::laboratory::verdict::Evidence;
use study::sweep::Sweep;

#[derive(Debug, clap::Args)]
pub(super) struct SweepArguments {
    #[command(flatten)]
    system: SystemArguments,
    #[arg(long, value_name = "KEY=1,2,...", help = format!("The quantity and its values: {KEYS}"))]
    over: String,
    /// Varies a key, such as spin=wopd,wapd, at each value; may be given many times
    #[arg(long, value_name = "KEY=A,B,...")]
    vary: Vec<String>,
    /// How many start phases each is run with; without it, as few as can tell who is ahead at all values together
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    seeds: Option<u32>,
    /// The measures to show
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        default_value = "throughput,scheduling-overhead"
    )]
    measure: Vec<String>,
    /// Writes the sweep and all runs as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes every figure of every run as a line of its own: comma-separated values, or Parquet where the file's name ends in .parquet;
    /// may be given many times
    #[arg(long, value_name = "FILE")]
    tidy: Vec<PathBuf>,
    /// Draws the sweep: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    effect: EffectArguments,
    #[command(flatten)]
    start: StartArguments,
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

impl SweepArguments {
    /// The system file.
    pub(super) fn file(&self) -> &PathBuf {
        &self.system.file
    }
}

pub(super) fn execute(arguments: &SweepArguments) -> Result<(), Failure> {
    let over = Variation::parse(&arguments.over)?;
    let values = study::sweep::quantities(&over)
        .map_err(|why| Failure::Usage(format!("--over {}: {why}", arguments.over)))?;
    for name in &arguments.measure {
        measures::explain(name).map_err(Failure::Measure)?;
    }
    let vary: Result<Vec<Variation>, _> = arguments
        .vary
        .iter()
        .map(|text| Variation::parse(text))
        .collect();
    let vary = vary?;
    let computer = arguments.laboratory.computer()?;
    let rows: usize = vary.iter().map(|one| one.values.len()).product();
    let comparisons = values.len() * (rows.max(1) - 1);
    let usual = u32::try_from(Evidence::phases_for_ratios(comparisons)).unwrap_or(u32::MAX);
    let seeds = arguments.seeds.unwrap_or(usual);
    let inner = Grid::new(&vary, seeds, &computer)?;
    let all: Vec<Variation> = std::iter::once(over.clone()).chain(vary).collect();
    let grid = Grid::new(&all, seeds, &computer)?;
    let outputs = [&arguments.json, &arguments.report];
    output::check(outputs.map(Option::as_ref))?;
    output::check(arguments.tidy.iter().map(Some))?;
    arguments.system.read()?;
    let file = &arguments.system.file;
    let points = grid.points(file, &arguments.system.changes, &computer);
    let name = format!("sweep-{}", super::input::stem(file));
    let laboratory = Laboratory::new(&arguments.laboratory, &name)?;
    let asked = points.clone();
    let points = laboratory.start(laboratory.expand(points)?, &arguments.start)?;
    let entries = laboratory.run(points)?;
    let sweep = Sweep::new(
        &over.key,
        &values,
        &inner,
        &entries,
        arguments.effect.smallest(),
    );

    for measure in &arguments.measure {
        output::say_line(format_args!(
            "{measure}\n{}{}",
            sweep.table(measure),
            sweep.conclusion(measure)
        ));
    }
    let wanted: Vec<&str> = arguments.measure.iter().map(String::as_str).collect();
    output::say_line(format_args!("{}", sweep.legend(&wanted)));
    if let Some(path) = &arguments.json {
        let whole = serde_json::json!({ "sweep": sweep, "runs": entries });
        write_json(path, &whole)?;
    }
    output::write_tidy(&arguments.tidy, || Tidy::as_asked(&entries, &asked))?;
    if let Some(path) = &arguments.report {
        let title = format!("{} over {}", file.display(), over.key);
        output::write(path, sweep.page(&title, &wanted, &entries).as_bytes())?;
    }
    let mut failures = Vec::new();
    for (value, comparison) in &sweep.steps {
        for row in &comparison.rows {
            let place = format!("{}={value} {}", over.key, row.combination.label());
            let say = |(seed, why): &(u64, String)| format!("{place}, seed {seed}: {why}");
            failures.extend(row.failures.iter().map(say));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::Vm(failures))
    }
}
