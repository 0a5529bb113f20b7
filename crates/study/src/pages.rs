//! Results as pages: pictures and tables, and what made them.

mod intervals;

use crate::compare::Comparison;
use crate::drawing::{Page, shares};
use crate::laboratory::Entry;
use crate::nuisance::Variance;
use crate::provenance::made_by;
use crate::random::{Floor, Regret};
use runner::measures::Measure;

/// A comparison as a page: what made it, a picture and a table for each measure.
pub fn comparison(
    title: &str,
    comparison: &Comparison,
    variances: &[Variance],
    entries: &[Entry],
    wanted: &[String],
) -> String {
    let mut page = Page::new(title);
    let named = |name: &&str| match wanted {
        [] => Measure::is_usual(name),
        wanted => wanted.iter().any(|one| one == name),
    };
    let names: Vec<&str> = comparison.measures().into_iter().filter(named).collect();
    page.paragraph(&comparison.legend(&names));
    for name in names {
        page.heading(name);
        if let Some(measure) = Measure::find(name) {
            let unit = match measure.unit() {
                "" => "a number",
                unit => unit,
            };
            page.paragraph(&format!("{} ({unit})", measure.line()));
        }
        if let Some(verdict) = comparison.verdict(name) {
            page.paragraph(&verdict);
        }
        page.figure(&intervals::intervals(comparison, name), line_of(name));
        page.table(&comparison.table(name));
        for variance in variances.iter().filter(|one| one.measure == name) {
            page.paragraph(&variance.head());
            if let Some(table) = variance.table() {
                page.table(&table);
                page.paragraph(&variance.foot());
            }
        }
    }
    let bars = shares_of(comparison);
    if !bars.is_empty() {
        page.heading("Where the harts' time went");
        let parts = ["guest", "scheduling", "simulation", "idle"];
        page.figure(&shares(&parts, &bars), "Shares of the harts' time, medians");
    }
    made_by(&mut page, entries);
    page.finish()
}

/// The regret of policies over drawn systems as a page: the table, each system's regrets, and the floor where it was measured.
pub fn regret(regret: &Regret, floor: Option<&Floor>, entries: &[Entry]) -> String {
    let mut page = Page::new("Regret on drawn systems");
    page.paragraph(
        "Regret is how far a policy stays behind the best one of a system: one less its throughput over that of the best.",
    );
    page.table(&regret.table());
    page.heading("System by system");
    page.table(&regret.systems());
    if let Some(floor) = floor {
        page.heading("The floor");
        page.paragraph(
            "The floor ratio of a VM is its completions over those that a strict partition of time would give it: its share of what it completes \
             alone.",
        );
        page.table(&floor.table());
    }
    made_by(&mut page, entries);
    page.finish()
}

fn line_of(name: &str) -> &'static str {
    Measure::find(name).map_or("", Measure::line)
}

/// For each combination where the time of the harts went.
fn shares_of(comparison: &Comparison) -> Vec<(String, Vec<f64>)> {
    let measures = [
        Measure::GuestUtilisation,
        Measure::SchedulingOverhead,
        Measure::SimulationOverhead,
        Measure::Idle,
    ];
    let rows = comparison.rows.iter().enumerate();
    rows.filter_map(|(index, row)| {
        let parts = measures.iter().map(|measure| {
            let cell = comparison.cell(index, measure.name())?;
            Some(cell.value.median)
        });
        Some((row.combination.label(), parts.collect::<Option<Vec<_>>>()?))
    })
    .collect()
}
