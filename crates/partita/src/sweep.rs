//! Sweeps: how a comparison changes with a quantity, and where its conclusion turns over.

use crate::compare::{Comparison, Grid};
use crate::drawing::{self, Line, Page};
use crate::laboratory::Entry;
use crate::measures;
use crate::report::Table;
use serde::Serialize;

/// A comparison at each value of a quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// The key that is swept.
    pub key: String,
    /// Its values, each with the comparison there.
    pub steps: Vec<(f64, Comparison)>,
}

/// Which of two combinations is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The one, with its whole interval.
    Above,
    /// The first row, with the whole interval.
    Below,
    /// The interval does not tell.
    Open,
}

/// Between two values, who is ahead changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// The combination that is compared with the first row.
    pub combination: String,
    /// The last value at which one is ahead.
    pub from: f64,
    /// The next value at which the other is.
    pub to: f64,
    /// Whether the combination has more from there on.
    pub rises: bool,
}

impl Sweep {
    /// Divides entries, in the order of a grid whose first key is the one that is swept, among its `values`; `grid` is
    /// that of the other keys.
    pub fn new(key: &str, values: &[f64], grid: &Grid, entries: &[Entry]) -> Self {
        let size = (grid.combinations.len() * grid.seeds.len()).max(1);
        let parts = entries.chunks(size);
        let steps = values.iter().zip(parts);
        Self {
            key: String::from(key),
            steps: steps
                .map(|(value, entries)| (*value, Comparison::new(grid, entries)))
                .collect(),
        }
    }

    /// Who is ahead at each value, by a measure: each other combination beside the first.
    fn sides(&self, row: usize, measure: &str) -> Vec<(f64, Side)> {
        let side = |comparison: &Comparison| match comparison.cell(row, measure)?.ratio {
            Some(ratio) if ratio.low > 1.0 => Some(Side::Above),
            Some(ratio) if ratio.high < 1.0 => Some(Side::Below),
            _ => Some(Side::Open),
        };
        let steps = self.steps.iter();
        steps
            .filter_map(|(value, comparison)| Some((*value, side(comparison)?)))
            .collect()
    }

    /// Where a measure's conclusion turns over: values at which intervals leave it open lie between.
    pub fn turns(&self, measure: &str) -> Vec<Turn> {
        let rows = self.steps.first().map_or(0, |(_, first)| first.rows.len());
        let mut turns = Vec::new();
        for row in 1..rows {
            let mut last: Option<(f64, Side)> = None;
            for (value, side) in self.sides(row, measure) {
                if side == Side::Open {
                    continue;
                }
                if let Some((from, before)) = last
                    && before != side
                {
                    let combination = self
                        .steps
                        .first()
                        .and_then(|(_, first)| first.rows.get(row))
                        .map_or_else(String::new, |row| row.combination.label());
                    turns.push(Turn {
                        combination,
                        from,
                        to: value,
                        rises: side == Side::Above,
                    });
                }
                last = Some((value, side));
            }
        }
        turns
    }

    /// A table of one measure: a line for each value, a column for each combination.
    pub fn table(&self, measure: &str) -> Table {
        let mut headings = vec![self.key.clone()];
        let first = self.steps.first();
        for (index, row) in first
            .iter()
            .flat_map(|(_, first)| first.rows.iter().enumerate())
        {
            headings.push(row.combination.label());
            headings.push(String::from(if index == 0 { "interval" } else { "ratio" }));
            if index > 0 {
                headings.push(String::from("interval"));
            }
        }
        let mut table = Table::new(headings);
        let number = measures::number;
        for (value, comparison) in &self.steps {
            let mut cells = vec![value.to_string()];
            for row in 0..comparison.rows.len() {
                match comparison.cell(row, measure) {
                    None => cells.extend(
                        ["-", "", ""]
                            .iter()
                            .take(2 + row.min(1))
                            .map(|cell| String::from(*cell)),
                    ),
                    Some(cell) => {
                        cells.push(number(cell.value.median));
                        let summary = match (row, &cell.ratio) {
                            (0, _) | (_, None) => &cell.value,
                            (_, Some(ratio)) => {
                                cells.push(format!("{:.4}", ratio.median));
                                ratio
                            }
                        };
                        cells.push(format!(
                            "{} .. {}",
                            number(summary.low),
                            number(summary.high)
                        ));
                    }
                }
            }
            table.row(cells);
        }
        table
    }

    /// What the turns are, in words.
    pub fn conclusion(&self, measure: &str) -> String {
        let turns = self.turns(measure);
        let rows = self.steps.first().map_or(0, |(_, first)| first.rows.len());
        if rows < 2 {
            return String::new();
        }
        if turns.is_empty() {
            return format!("{measure}: no conclusion turns over in this range\n");
        }
        let say = |turn: &Turn| {
            let what = if turn.rises { "more" } else { "less" };
            format!(
                "{measure}: between {} = {} and {}, {} comes to have {what} than the first\n",
                self.key, turn.from, turn.to, turn.combination
            )
        };
        turns.iter().map(say).collect()
    }

    /// The sweep as a page.
    pub fn page(&self, title: &str, wanted: &[&str]) -> String {
        let mut page = Page::new(title);
        if let Some((_, comparison)) = self.steps.first() {
            page.paragraph(&comparison.legend());
        }
        for measure in wanted {
            page.heading(measure);
            let conclusion = self.conclusion(measure);
            if !conclusion.is_empty() {
                page.paragraph(&conclusion);
            }
            let marks: Vec<(f64, String)> = self
                .turns(measure)
                .iter()
                .map(|turn| {
                    (
                        f64::midpoint(turn.from, turn.to),
                        String::from("turns over"),
                    )
                })
                .collect();
            let unit = measures::find(measure).map_or("", |measure| measure.unit);
            let up = format!("{measure} {unit}");
            let picture = drawing::lines(&self.lines(measure), &self.key, up.trim(), &marks);
            page.figure(&picture, measure);
            page.table(&self.table(measure));
        }
        page.finish()
    }

    fn lines(&self, measure: &str) -> Vec<Line> {
        let rows = self.steps.first().map_or(0, |(_, first)| first.rows.len());
        let line = |row: usize| {
            let points = self.steps.iter().filter_map(|(value, comparison)| {
                let cell = comparison.cell(row, measure)?;
                Some((*value, cell.value.median, cell.value.low, cell.value.high))
            });
            let name = self
                .steps
                .first()
                .and_then(|(_, first)| first.rows.get(row))
                .map_or_else(String::new, |row| row.combination.label());
            Line {
                name,
                points: points.collect(),
            }
        };
        (0..rows).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Variation;
    use crate::laboratory::{Computer, Figures, Fingerprint, MadeBy, Outcome};
    use std::collections::BTreeMap;
    use std::path::Path;

    /// A sweep in which b's throughput, in parts of a's, is `ratio` at each value.
    fn sweep(ratio: impl Fn(f64) -> f64) -> Sweep {
        let values = [1.0, 2.0, 3.0, 4.0];
        let vary = [Variation::parse("spin=a,b").unwrap()];
        let grid = Grid::new(&vary, 6, &Computer::Qemu).unwrap();
        let mut entries = Vec::new();
        for value in values {
            for point in grid.points(Path::new("s.toml"), &[], &Computer::Qemu) {
                let base = 1.0 + point.seed as f64;
                let wobble = 1.0 + 0.01 * (point.seed as f64 - 2.5);
                let b = point.changes.contains(&String::from("spin=b"));
                let etr = if b {
                    base * ratio(value) * wobble
                } else {
                    base
                };
                entries.push(Entry {
                    id: Fingerprint::of(b""),
                    point,
                    made_by: MadeBy {
                        partita: String::new(),
                        system: String::new(),
                        profile: None,
                        files: BTreeMap::new(),
                    },
                    outcome: Outcome::Finished {
                        figures: Figures::from([(String::from("etr"), etr)]),
                        report: serde_json::Value::Null,
                    },
                });
            }
        }
        Sweep::new("profile.costs.trap", &values, &grid, &entries)
    }

    #[test]
    fn where_a_conclusion_turns_over_is_found() {
        // Ahead at 1 and 2, open at 3, behind at 4.
        let turning = sweep(|value| 1.3 - value * 0.1);
        let turns = turning.turns("etr");
        assert_eq!(turns.len(), 1);
        assert_eq!(
            (turns[0].from, turns[0].to, turns[0].rises),
            (2.0, 4.0, false)
        );
        assert!(
            turning
                .conclusion("etr")
                .contains("between profile.costs.trap = 2 and 4")
        );
        let page = turning.page("t", &["etr"]);
        assert!(page.contains("turns over") && page.contains("polyline"));

        let steady = sweep(|_| 1.5);
        assert!(steady.turns("etr").is_empty());
        assert!(
            steady
                .conclusion("etr")
                .contains("no conclusion turns over")
        );
    }

    #[test]
    fn each_value_has_its_line() {
        let table = sweep(|_| 2.0).table("etr").to_string();
        assert_eq!(table.lines().count(), 5, "{table}");
        assert!(table.lines().nth(1).unwrap().contains("2.0000"), "{table}");
    }
}
