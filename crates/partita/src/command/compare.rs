//! `partita compare`.

mod arguments;

pub(super) use arguments::{CompareArguments, variations};

use super::failure::Failure;
use super::input::SystemArguments;
use super::laboratory::Laboratory;
use super::output::{self, write_json};
use super::random;
use runner::measures::{self, Measure};
use study::compare::{Comparison, Grid};
use study::laboratory::tidy::Tidy;
use study::nuisance::{self, Variance, design};

/// Start phases unless it is said otherwise.
const SEEDS: u32 = 10;

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
    let name = format!("compare-{}", super::input::stem(file));
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
    let asked = points.clone();
    let points = laboratory.start(
        laboratory.expand(points)?,
        &arguments.start.booting(!factors.is_empty()),
    )?;
    let entries = laboratory.run(points)?;

    let comparison = Comparison::new(&grid, &entries, arguments.effect.smallest());
    let variances = comparison.variances(&entries, &arguments.measure, &factors);
    show(&comparison, &variances, &arguments.measure);
    if let Some(path) = &arguments.json {
        let whole = serde_json::json!({ "comparison": comparison, "variances": variances, "runs": entries });
        write_json(path, &whole)?;
    }
    if let Some(path) = &arguments.csv {
        output::write(path, comparison.csv().as_bytes())?;
    }
    output::write_tidy(&arguments.tidy, || Tidy::as_asked(&entries, &asked))?;
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
    let names: Vec<&str> = if wanted.is_empty() {
        let usual = comparison.measures();
        usual
            .into_iter()
            .filter(|name| Measure::is_usual(name))
            .collect()
    } else {
        wanted.iter().map(String::as_str).collect()
    };
    for name in &names {
        let verdict = comparison
            .verdict(name)
            .map_or_else(String::new, |line| line + "\n");
        output::say_line(format_args!("{}{verdict}", comparison.table(name)));
        for variance in variances.iter().filter(|one| one.measure == *name) {
            output::say_line(format_args!("{}", variance.show()));
        }
    }
    output::say_line(format_args!("{}", comparison.legend(&names)));
}
