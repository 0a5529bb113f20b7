//! Comparison of combinations over all their runs.

use super::Grid;
use super::ranking::{self, Ranking};
use super::row::{Cell, Row};
use crate::laboratory::statistics::{Summary, paired_ratio, ratios, summarise};
use crate::laboratory::tidy::field;
use crate::laboratory::{Entry, Outcome, is_one_run};
use runner::measures::{Figures, Measure};
use runner::table::Table;
use runner::table::number;
use serde::Serialize;
use std::collections::BTreeMap;

/// A comparison's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The combinations; the ratios are to the first.
    pub rows: Vec<Row>,
    /// How many start phases each had.
    pub seeds: usize,
    /// The smallest effect that counts, as a part.
    pub smallest: f64,
    /// Rankings by each measure of which more, or less, is better.
    pub rankings: Vec<Ranking>,
}

impl Comparison {
    /// Condenses entries that lie in the order of [`Grid::points`].
    /// `smallest` is the smallest lead that counts, as a part.
    pub fn new(grid: &Grid, entries: &[Entry], smallest: f64) -> Self {
        let phases = grid.seeds.len().max(1);
        let groups: Vec<&[Entry]> = entries.chunks(phases).collect();
        let base = groups.first().copied().unwrap_or_default();
        let rows = grid.combinations.iter().zip(&groups);
        let rows = rows.map(|(combination, entries)| Row {
            combination: combination.clone(),
            cells: cells(entries, base),
            alike: is_one_run(entries),
            failures: entries
                .iter()
                .filter_map(|entry| match &entry.outcome {
                    Outcome::Failed(why) => Some((entry.point.seed, why.clone())),
                    Outcome::Finished { .. } => None,
                })
                .collect(),
        });
        let rows: Vec<Row> = rows.collect();
        let rank = |measure: &Measure| ranking::rank(*measure, &rows, &groups, smallest);
        Self {
            rankings: Measure::ALL.iter().filter_map(rank).collect(),
            rows,
            seeds: grid.seeds.len(),
            smallest,
        }
    }

    /// A cell.
    pub fn cell(&self, row: usize, measure: &str) -> Option<&Cell> {
        let mut cells = self.rows.get(row)?.cells.iter();
        cells.find(|cell| cell.measure == measure)
    }

    /// Ranking by a measure, in a line.
    pub fn verdict(&self, measure: &str) -> Option<String> {
        let mut rankings = self.rankings.iter();
        let ranking = rankings.find(|ranking| ranking.measure == measure)?;
        Some(ranking.line())
    }

    /// Returns whether a run failed.
    pub fn has_failures(&self) -> bool {
        self.rows.iter().any(|row| !row.failures.is_empty())
    }

    /// The names of the measures that any combination has, in the order of their definitions.
    pub fn measures(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for cell in self.rows.iter().flat_map(|row| &row.cells) {
            if !names.contains(&cell.measure.as_str()) {
                names.push(&cell.measure);
            }
        }
        let place = |name: &&str| (Measure::find(name), String::from(*name));
        names.sort_by_key(place);
        names
    }

    /// A table of one measure.
    pub fn table(&self, measure: &str) -> Table {
        let unit = Measure::unit_of(measure);
        let heading = match unit {
            "" => String::from(measure),
            unit => format!("{measure} ({unit})"),
        };
        let mut table = Table::new([
            heading.as_str(),
            "median",
            "interval",
            "ratio",
            "interval",
            "runs",
        ]);
        let interval = |row: &Row, summary: &Summary| {
            if !row.has_spread(summary) {
                return String::from("-");
            }
            let (low, high) = (number(summary.low), number(summary.high));
            format!("{low} .. {high}")
        };
        for (index, row) in self.rows.iter().enumerate() {
            let mut cells = vec![row.combination.label()];
            match self.cell(index, measure) {
                None => cells.extend(["-", "", "", ""].map(String::from)),
                Some(cell) => {
                    cells.push(number(cell.value.median));
                    cells.push(interval(row, &cell.value));
                    match (&cell.ratio, index) {
                        (_, 0) => cells.extend([String::from("1"), String::new()]),
                        (None, _) => cells.extend(["-", ""].map(String::from)),
                        (Some(ratio), _) => {
                            cells.extend([format!("{:.4}", ratio.median), interval(row, ratio)]);
                        }
                    }
                }
            }
            let finished = self.seeds - row.failures.len();
            cells.push(format!("{finished} of {}", self.seeds));
            table.row(cells);
        }
        table
    }

    /// All figures as comma-separated values: one line for each combination and measure.
    pub fn csv(&self) -> String {
        let keys = self.rows.first().map(|row| &row.combination.values);
        let keys = keys.into_iter().flatten().map(|(key, _)| field(key) + ",");
        let mut text: String = keys.collect();
        text += "combination,measure,unit,count,median,low,high,confidence,ratio,ratio_low,ratio_high\n";
        for row in &self.rows {
            for cell in &row.cells {
                let unit = Measure::unit_of(&cell.measure);
                let Summary {
                    count,
                    median,
                    low,
                    high,
                    confidence,
                } = cell.value;
                let ratio = cell.ratio.map_or_else(
                    || String::from(",,"),
                    |ratio| format!("{},{},{}", ratio.median, ratio.low, ratio.high),
                );
                let label = field(&row.combination.label());
                let measure = field(&cell.measure);
                let values = row.combination.values.iter();
                let values: String = values.map(|(_, value)| field(value) + ",").collect();
                text += &format!(
                    "{values}{label},{measure},{unit},{count},{median},{low},{high},{confidence},{ratio}\n"
                );
            }
        }
        text
    }
}

fn cells(entries: &[Entry], base: &[Entry]) -> Vec<Cell> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut pairs: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let base = base.get(index).and_then(|entry| entry.outcome.figures());
        let own = entry.outcome.figures().into_iter();
        for (name, value) in own.flat_map(Figures::iter) {
            let name = name.as_str();
            values.entry(name).or_default().push(value);
            if let Some(base) = base.and_then(|base| base.named(name)) {
                pairs.entry(name).or_default().push((value, base));
            }
        }
    }
    let cell = |(name, values): (&&str, &Vec<f64>)| {
        let pairs = pairs.get(*name).map_or(&[][..], |pairs| &pairs[..]);
        Some(Cell {
            measure: String::from(*name),
            value: summarise(values)?,
            ratios: ratios(pairs),
            ratio: paired_ratio(pairs),
        })
    };
    values.iter().filter_map(cell).collect()
}
