//! `partita compare`.

use super::laboratory::{EffectArguments, Laboratory, LaboratoryArguments, StartArguments};
use super::{Failure, SystemArguments, output, write_json};
use partita::compare::{Comparison, Grid, KEYS, Variation};
use partita::laboratory::tidy::tidy;
use partita::measures;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct CompareArguments {
    #[command(flatten)]
    system: SystemArguments,
    #[arg(long, value_name = "KEY=A,B,...", help = format!("Varies a key, such as spin=wopd,wapd; may be given many times: profile (the machine's), hypervisor (its ELF file), {KEYS}"))]
    vary: Vec<String>,
    /// How many start phases each combination is run with
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// The measures to show; without it, the usual ones
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    measure: Vec<String>,
    /// Writes the comparison and all runs as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the comparison as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Writes every figure of every run as a line of comma-separated values
    #[arg(long, value_name = "FILE")]
    tidy: Option<PathBuf>,
    /// Draws the comparison: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    effect: EffectArguments,
    #[command(flatten)]
    start: StartArguments,
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

pub(super) fn execute(arguments: &CompareArguments) -> Result<(), Failure> {
    let variations: Result<Vec<Variation>, _> = arguments
        .vary
        .iter()
        .map(|text| Variation::parse(text))
        .collect();
    let computer = arguments.laboratory.computer()?;
    let grid = Grid::new(&variations?, arguments.seeds, &computer)?;
    for name in &arguments.measure {
        measures::explain(name).map_err(Failure::Measure)?;
    }
    let outputs = [
        &arguments.json,
        &arguments.csv,
        &arguments.tidy,
        &arguments.report,
    ];
    output::check(outputs.map(Option::as_ref))?;
    arguments.system.read()?;
    let file = &arguments.system.file;
    let points = grid.points(file, &arguments.system.changes, &computer);
    let name = format!("compare-{}", super::stem(file));
    let laboratory = Laboratory::new(&arguments.laboratory, &name)?;
    let points = laboratory.start(laboratory.expand(points)?, &arguments.start)?;
    let entries = laboratory.run(points)?;

    let comparison = Comparison::new(&grid, &entries, arguments.effect.smallest());
    // What goes to standard output for programs goes there alone.
    if !outputs
        .iter()
        .any(|path| output::is_standard(path.as_ref()))
    {
        show(&comparison, &arguments.measure);
    }
    if let Some(path) = &arguments.json {
        let whole = serde_json::json!({ "comparison": comparison, "runs": entries });
        write_json(path, &whole)?;
    }
    if let Some(path) = &arguments.csv {
        output::write(path, comparison.csv().as_bytes())?;
    }
    if let Some(path) = &arguments.tidy {
        output::write(path, tidy(&entries).as_bytes())?;
    }
    if let Some(path) = &arguments.report {
        let title = format!("Comparison of {}", file.display());
        let page = partita::drawing::comparison(&title, &comparison, &entries, &arguments.measure);
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

fn show(comparison: &Comparison, wanted: &[String]) {
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
    }
    let _ = writeln!(out, "{}", comparison.legend(&names));
}
