//! Sweeps: how a comparison changes with a quantity, and where its conclusion turns over.

use crate::compare::{self, Comparison, Grid, Variation};
use crate::drawing::{self, Band, Line, Page};
use crate::laboratory::Entry;
use crate::laboratory::verdict::{Answer, Evidence, correction, decide, refusal};
use abi::keys::{self, Takes};
use runner::measures::Measure;
use runner::table::Table;
use serde::Serialize;
use system::{Bytes, Duration};

/// A comparison at each value of a quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// The key that is swept.
    pub key: String,
    /// Its values, each with the comparison there.
    pub steps: Vec<(f64, Comparison)>,
}

/// The numbers that a quantity's values stand for, to be drawn and told in order: plain numbers, times in milliseconds, or
/// sizes in MiB.
///
/// # Errors
/// A value is none of these, or they are of different kinds; the text says what would do.
pub fn quantities(over: &Variation) -> Result<Vec<f64>, String> {
    let texts = || over.values.iter().map(|value| value.trim_matches('"'));
    let numbers = texts().map(|text| text.parse::<f64>().ok());
    if let Some(numbers) = numbers.collect::<Option<Vec<f64>>>() {
        if is_time(&over.key) || is_size(&over.key) {
            let example = if is_time(&over.key) {
                "1ms,5ms"
            } else {
                "256MiB,1GiB"
            };
            return Err(format!("its values need a unit, such as {example}"));
        }
        return Ok(numbers);
    }
    let times = texts().map(|text| Duration::parse(text).map(|time| time.0 as f64 / 1e3));
    if let Some(times) = times.collect::<Option<Vec<f64>>>() {
        return Ok(times);
    }
    let sizes =
        texts().map(|text| Bytes::parse(text).map(|size| size.0 as f64 / f64::from(1 << 20)));
    sizes.collect::<Option<Vec<f64>>>().ok_or_else(|| {
        String::from(
            "its values must be numbers, times such as 1ms,5ms, or sizes such as 256MiB,1GiB",
        )
    })
}

/// Returns whether a key of the system file takes a time.
fn is_time(key: &str) -> bool {
    keys::by_path(key).is_some_and(|row| matches!(row.takes, Takes::Time { .. }))
}

/// Returns whether a key of the system file takes a size.
fn is_size(key: &str) -> bool {
    keys::by_path(key).is_some_and(|row| matches!(row.takes, Takes::Size { .. }))
}

/// The unit in which a quantity's values are told, if they have one.
fn unit(key: &str) -> &'static str {
    if is_time(key) {
        " (ms)"
    } else if is_size(key) {
        " (MiB)"
    } else {
        ""
    }
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
    /// Set if the combination has more from there on.
    pub rises: bool,
}

impl Sweep {
    /// Divides entries, in the order of a grid whose first key is the one that is swept, among its `values`; `grid` is
    /// that of the other keys, and `smallest` the smallest effect that counts, as a part.
    pub fn new(key: &str, values: &[f64], grid: &Grid, entries: &[Entry], smallest: f64) -> Self {
        let size = (grid.combinations.len() * grid.seeds.len()).max(1);
        let parts = entries.chunks(size);
        let steps = values.iter().zip(parts);
        Self {
            key: format!("{key}{}", unit(key)),
            steps: steps
                .map(|(value, entries)| (*value, Comparison::new(grid, entries, smallest)))
                .collect(),
        }
    }

    /// Verdicts at each value, by a measure: each other combination beside the first, all of them and all values
    /// together.
    pub fn answers(&self, measure: &str) -> Vec<Vec<(f64, Answer)>> {
        let rows = self.steps.first().map_or(0, |(_, first)| first.rows.len());
        let evidence = |comparison: &Comparison, row: usize| {
            let is_one_run = |row: usize| comparison.rows.get(row).is_none_or(|row| row.alike);
            match comparison.cell(row, measure) {
                None => Evidence::none(),
                Some(_) if is_one_run(row) || is_one_run(0) => Evidence::of_one_run(),
                Some(cell) => Evidence::of_ratio(&cell.ratios, comparison.smallest),
            }
        };
        let each = (1..rows).flat_map(|row| {
            let steps = self.steps.iter();
            steps.map(move |(_, comparison)| evidence(comparison, row))
        });
        let answers = decide(&each.collect::<Vec<_>>());
        let values = || self.steps.iter().map(|(value, _)| *value);
        let of_row = |answers: &[Answer]| values().zip(answers.iter().copied()).collect();
        answers
            .chunks(self.steps.len().max(1))
            .map(of_row)
            .collect()
    }

    /// Where a measure's conclusion turns over: values at which intervals leave it open lie between.
    pub fn turns(&self, measure: &str) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (index, answers) in self.answers(measure).into_iter().enumerate() {
            let mut last: Option<(f64, Answer)> = None;
            for (value, answer) in answers {
                if !matches!(answer, Answer::Above | Answer::Below) {
                    continue;
                }
                if let Some((from, before)) = last
                    && before != answer
                {
                    let combination = self
                        .steps
                        .first()
                        .and_then(|(_, first)| first.rows.get(index + 1))
                        .map_or_else(String::new, |row| row.combination.label());
                    turns.push(Turn {
                        combination,
                        from,
                        to: value,
                        rises: answer == Answer::Above,
                    });
                }
                last = Some((value, answer));
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
        let number = runner::table::number;
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
                        let known = comparison.rows.get(row);
                        cells.push(if known.is_some_and(|row| row.has_spread(summary)) {
                            format!("{} .. {}", number(summary.low), number(summary.high))
                        } else {
                            String::from("-")
                        });
                    }
                }
            }
            table.row(cells);
        }
        table
    }

    /// Describes the turns.
    pub fn conclusion(&self, measure: &str) -> String {
        let turns = self.turns(measure);
        let rows = self.steps.first().map_or(0, |(_, first)| first.rows.len());
        if rows < 2 {
            return String::new();
        }
        let say = |turn: &Turn| {
            let what = if turn.rises { "more" } else { "less" };
            format!(
                "{measure}: between {} = {} and {}, {} comes to have {what} than the first\n",
                self.key, turn.from, turn.to, turn.combination
            )
        };
        let mut text: String = turns.iter().map(say).collect();
        let answers: Vec<(f64, Answer)> = self.answers(measure).into_iter().flatten().collect();
        let values = |wanted: &dyn Fn(Answer) -> bool| -> Vec<String> {
            let of = answers.iter().filter(|(_, answer)| wanted(*answer));
            let mut values: Vec<f64> = of.map(|(value, _)| *value).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            values.iter().map(f64::to_string).collect()
        };
        let told = values(&|answer| matches!(answer, Answer::Above | Answer::Below));
        let equal = values(&|answer| answer == Answer::Within);
        let open = values(&|answer| answer == Answer::Open);
        let refused = values(&|answer| matches!(answer, Answer::Refused { .. }));
        let is_whole = open.is_empty() && refused.is_empty();
        match (turns.is_empty(), told.is_empty() && equal.is_empty()) {
            (false, _) => {}
            (true, false) if is_whole => {
                text += &format!("{measure}: no conclusion turns over in this range\n");
            }
            (true, false) => {
                text += &format!("{measure}: no conclusion turns over where one can be drawn\n");
            }
            (true, true) => {
                text += &format!("{measure}: no conclusion can be drawn\n");
            }
        }
        let key = &self.key;
        if !equal.is_empty() {
            let equal = equal.join(", ");
            text += &format!("{measure}: at {key} = {equal} there is no effect that counts\n");
        }
        if !open.is_empty() {
            let open = open.join(", ");
            text += &format!(
                "{measure}: at {key} = {open} the start phases do not tell who is ahead\n"
            );
        }
        let why = answers.iter().rev().find_map(|(_, answer)| match answer {
            Answer::Refused { phases, needed } => Some(refusal(*phases, *needed)),
            _ => None,
        });
        if let Some(why) = why {
            let refused = refused.join(", ");
            text += &format!("{measure}: at {key} = {refused} {why}\n");
        }
        text += &format!("{measure}: {}\n", correction(answers.len()));
        text
    }

    /// Explains the intervals of these measures.
    pub fn legend(&self, measures: &[&str]) -> String {
        let name = |(value, _): &(f64, Comparison)| format!("{}={value} ", self.key);
        let names: Vec<String> = self.steps.iter().map(name).collect();
        let steps = self.steps.iter().zip(&names);
        let steps: Vec<(&str, &Comparison)> = steps
            .map(|((_, comparison), name)| (name.as_str(), comparison))
            .collect();
        compare::legend(&steps, measures)
    }

    /// The sweep as a page.
    pub fn page(&self, title: &str, wanted: &[&str], entries: &[Entry]) -> String {
        let mut page = Page::new(title);
        page.paragraph(&self.legend(wanted));
        for measure in wanted {
            page.heading(measure);
            for line in self.conclusion(measure).lines() {
                page.paragraph(line);
            }
            let turns = self.turns(measure).into_iter();
            let bands = turns.map(|turn| Band {
                from: turn.from,
                to: turn.to,
                word: format!("{} turns over", turn.combination),
            });
            let bands: Vec<Band> = bands.collect();
            let unit = Measure::unit_of(measure);
            let up = format!("{measure} {unit}");
            let picture = drawing::lines(&self.lines(measure), &self.key, up.trim(), &bands);
            page.figure(&picture, measure);
            page.table(&self.table(measure));
        }
        crate::provenance::made_by(&mut page, entries);
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
    use crate::laboratory::statistics::Summary;
    use crate::laboratory::{Computer, MadeBy, Outcome};
    use runner::measures::Figures;
    use std::path::Path;
    use system::fingerprint::Fingerprint;

    /// Start phases of each: four comparisons need them.
    const PHASES: u32 = 8;

    /// A sweep in which b's throughput, in parts of a's, is `ratio` at each value.
    fn sweep(ratio: impl Fn(f64) -> f64) -> Sweep {
        let values = [1.0, 2.0, 3.0, 4.0];
        let vary = [Variation::parse("spin=a,b").unwrap()];
        let grid = Grid::new(&vary, PHASES, &Computer::Qemu).unwrap();
        let mut entries = Vec::new();
        for value in values {
            for point in grid.points(Path::new("s.toml"), &[], &Computer::Qemu) {
                let base = 1.0 + point.seed as f64;
                let wobble = 1.0 + 0.01 * (point.seed as f64 - 3.5);
                let b = point.changes.contains(&String::from("spin=b"));
                let etr = if b {
                    base * ratio(value) * wobble
                } else {
                    base
                };
                entries.push(Entry {
                    id: Fingerprint::of(b""),
                    point,
                    made_by: MadeBy::default(),
                    outcome: Outcome::of_figures(Figures::from([(Measure::Throughput, etr)])),
                });
            }
        }
        Sweep::new("profile.costs.trap", &values, &grid, &entries, 0.0)
    }

    #[test]
    fn where_a_conclusion_turns_over_is_found() {
        // Forecast at 1 and 2, open at 3, behind at 4.
        let turning = sweep(|value| 1.3 - value * 0.1);
        let turns = turning.turns("throughput");
        assert_eq!(turns.len(), 1);
        assert_eq!(
            (turns[0].from, turns[0].to, turns[0].rises),
            (2.0, 4.0, false)
        );
        assert!(
            turning
                .conclusion("throughput")
                .contains("between profile.costs.trap = 2 and 4")
        );
        let page = turning.page("t", &["throughput"], &[]);
        assert!(page.contains("turns over") && page.contains("polyline"));
        // Each conclusion is a paragraph of its own.
        let conclusions = turning.conclusion("throughput").lines().count();
        assert!(
            page.matches("<p>throughput: ").count() == conclusions,
            "{page}"
        );

        let steady = sweep(|_| 1.5);
        assert!(steady.turns("throughput").is_empty());
        assert!(
            steady
                .conclusion("throughput")
                .contains("no conclusion turns over")
        );
    }

    #[test]
    fn nothing_follows_from_one_phase() {
        let mut lost = sweep(|_| 1.5);
        for (_, comparison) in &mut lost.steps {
            for row in &mut comparison.rows {
                row.cells.clear();
                row.failures = (0..8).map(|seed| (seed, String::from("lost"))).collect();
            }
        }
        let said = lost.conclusion("throughput");
        assert!(said.contains("no conclusion can be drawn"), "{said}");
        assert!(!said.contains("turns over"), "{said}");
        assert!(lost.legend(&["throughput"]).contains("No run finished"));

        let mut one = sweep(|value| if value < 3.0 { 1.5 } else { 0.5 });
        assert_eq!(one.turns("throughput").len(), 1);
        for (_, comparison) in &mut one.steps {
            comparison.seeds = 1;
            for cell in comparison.rows.iter_mut().flat_map(|row| &mut row.cells) {
                cell.value.count = 1;
                cell.ratios.truncate(1);
                cell.ratio = cell.ratio.map(|ratio| Summary { count: 1, ..ratio });
            }
        }
        assert!(one.turns("throughput").is_empty());
        let said = one.conclusion("throughput");
        assert!(
            said.contains("no verdict: 1 seed is too few; use --seeds 8"),
            "{said}"
        );
    }

    #[test]
    fn times_and_sizes_sweep_as_written() {
        let read = |text: &str| quantities(&Variation::parse(text).unwrap());
        assert_eq!(read("time-slice=1ms,5ms"), Ok(vec![1.0, 5.0]));
        assert_eq!(read("time-slice=\"500 us\",\"2 ms\""), Ok(vec![0.5, 2.0]));
        assert_eq!(read("reservation-limit=20ms,1s"), Ok(vec![20.0, 1000.0]));
        assert_eq!(read("memory=512MiB,1GiB"), Ok(vec![512.0, 1024.0]));
        assert_eq!(read("vm.a.memory=64MiB"), Ok(vec![64.0]));
        assert_eq!(read("harts=1,2"), Ok(vec![1.0, 2.0]));
        assert_eq!(read("profile.costs.memory=1,2"), Ok(vec![1.0, 2.0]));
        assert!(read("time-slice=1,5").unwrap_err().contains("1ms,5ms"));
        assert!(read("memory=1,5").unwrap_err().contains("256MiB"));
        for text in ["spin=wopd,wapd", "time-slice=1ms,long", "memory=1MiB,2ms"] {
            assert!(read(text).is_err(), "{text}");
        }
        let swept = Sweep::new(
            "time-slice",
            &[1.0],
            &Grid::new(&[], 1, &Computer::Qemu).unwrap(),
            &[],
            0.0,
        );
        assert_eq!(swept.key, "time-slice (ms)");
    }

    #[test]
    fn each_value_has_its_line() {
        let table = sweep(|_| 2.0).table("throughput").to_string();
        assert_eq!(table.lines().count(), 5, "{table}");
        assert!(table.lines().nth(1).unwrap().contains("2.0000"), "{table}");
    }
}
