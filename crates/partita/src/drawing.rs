//! Pictures: SVG inside one HTML file that needs no other, legible in light and in dark.

mod beside;
mod distribution;
mod frame;
mod intervals;
pub mod lanes;
mod lines;
mod page;
mod scale;
mod scatter;
mod shares;
#[cfg(test)]
mod tests;

pub use beside::{Pair, beside, beside_colours};
pub use distribution::{distribution, quantiles, service};
pub use lines::{Band, Line, lines};
pub use page::{Page, escape};
pub use scale::Scale;
pub use scatter::{Points, scatter};
pub use shares::shares;

use crate::compare::Comparison;
use crate::laboratory::Entry;
use crate::measures::{self, Measure};
use crate::nuisance::Variance;
use crate::random::Regret;
use crate::report::Table;
use crate::system::Date;
use std::collections::BTreeSet;

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
        [] => measures::USUAL.contains(name),
        wanted => wanted.iter().any(|one| one == name),
    };
    let names: Vec<&str> = comparison.measures().into_iter().filter(named).collect();
    page.paragraph(&comparison.legend(&names));
    for name in names {
        page.heading(name);
        if let Some(Measure { line, unit, .. }) = measures::find(name) {
            page.paragraph(&format!(
                "{line} ({})",
                if unit.is_empty() { "a number" } else { unit }
            ));
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

/// The regret of policies over drawn systems as a page: the table, and each system's regrets.
pub fn regret(regret: &Regret, entries: &[Entry]) -> String {
    let mut page = Page::new("Regret on drawn systems");
    page.paragraph(
        "Regret is how far a policy stays behind the best one of a system: one less its throughput over that of the best.",
    );
    page.table(&regret.table());
    page.heading("System by system");
    page.table(&regret.systems());
    made_by(&mut page, entries);
    page.finish()
}

/// Says at a page's end what made it: the command, the date, the seeds, the settings that all runs share, and what was run.
pub fn made_by(page: &mut Page, entries: &[Entry]) {
    if let Some(entry) = entries.first() {
        page.heading("What made this");
        page.table(&makers(entry, entries));
    }
}

/// The same of a page about one run by this very command.
pub fn made_by_this(page: &mut Page) {
    page.heading("What made this");
    let mut table = Table::new(["what", "which"]);
    this_command(&mut table);
    table.row(["version", env!("CARGO_PKG_VERSION")]);
    page.table(&table);
}

fn this_command(table: &mut Table) {
    let words: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    table.row(["command", &words.join(" ")]);
    table.row(["drawn", &now()]);
}

/// A word of a command as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_./=,:+@%-".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        String::from(word)
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn line_of(name: &str) -> &'static str {
    measures::find(name).map_or("", |measure| measure.line)
}

/// The date and the time in UTC.
fn now() -> String {
    crate::qemu::calendar(Date::Host.seconds()).replace('T', " ") + " UTC"
}

/// For each combination where the time of the harts went.
fn shares_of(comparison: &Comparison) -> Vec<(String, Vec<f64>)> {
    let names = [
        "guest-utilisation",
        "scheduling-overhead",
        "simulation-overhead",
        "idle",
    ];
    let rows = comparison.rows.iter().enumerate();
    rows.filter_map(|(index, row)| {
        let parts = names.iter().map(|name| {
            let cell = comparison.cell(index, name)?;
            Some(cell.value.median)
        });
        Some((row.combination.label(), parts.collect::<Option<Vec<_>>>()?))
    })
    .collect()
}

fn makers(entry: &Entry, entries: &[Entry]) -> Table {
    let mut table = Table::new(["what", "which"]);
    this_command(&mut table);
    let systems: BTreeSet<String> = entries
        .iter()
        .map(|entry| entry.point.system.display().to_string())
        .collect();
    table.row(["system", &Vec::from_iter(systems).join(" ")]);
    let mut shared = entry.point.changes.clone();
    shared.retain(|change| {
        entries
            .iter()
            .all(|entry| entry.point.changes.contains(change))
    });
    table.row(["settings of all runs", &shared.join(" ")]);
    let mut seeds: Vec<u64> = entries.iter().map(|entry| entry.point.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    table.row(["seeds", &seeds.join(" ")]);
    table.row(["version", &entry.made_by.partita]);
    table.row(["computer", &entry.point.computer.to_string()]);
    let files: BTreeSet<(&str, &str)> = entries
        .iter()
        .flat_map(|entry| &entry.made_by.files)
        .map(|(what, fingerprint)| (what.as_str(), fingerprint.short()))
        .collect();
    for (what, fingerprint) in files {
        table.row([what, fingerprint]);
    }
    table
}
