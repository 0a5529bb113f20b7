//! Explanations of intervals: what they mean, and what they do not.

use super::{Comparison, Row};
use crate::laboratory::statistics::{CONFIDENCE, Summary};

/// Reach of start phases, for people whose runs are all the same.
const WHAT_VARIES: &str = "A start phase reaches exercisers whose exercise is random and whose command line names no \
seed= of its own, guests that go on from a checkpoint (--start-at TEXT), users at terminals, and disks whose profile has \
a range of seek times. Choose one of these, or --seeds 1.";

impl Comparison {
    /// Explains the intervals of these measures.
    pub fn legend(&self, measures: &[&str]) -> String {
        legend(&[("", self)], measures)
    }

    /// Runs that ended in order.
    fn finished(&self) -> usize {
        self.runs()
            - self
                .rows
                .iter()
                .map(|row| row.failures.len())
                .sum::<usize>()
    }

    fn runs(&self) -> usize {
        self.rows.len() * self.seeds
    }

    /// The medians and ratios of these measures whose intervals say something.
    fn spreads(&self, measures: &[&str]) -> Vec<Summary> {
        let of = |row: &Row| {
            let cells = row.cells.iter();
            let cells = cells.filter(|cell| measures.contains(&cell.measure.as_str()));
            let all = cells.flat_map(|cell| std::iter::once(cell.value).chain(cell.ratio));
            let with_spread = all.filter(|summary| row.has_spread(summary));
            with_spread.collect::<Vec<_>>()
        };
        self.rows.iter().flat_map(of).collect()
    }
}

/// Explains the intervals of these measures in several comparisons, each with the beginning of its rows' names.
pub fn legend(comparisons: &[(&str, &Comparison)], measures: &[&str]) -> String {
    let all = || comparisons.iter().map(|(_, comparison)| *comparison);
    let finished: usize = all().map(Comparison::finished).sum();
    let runs: usize = all().map(Comparison::runs).sum();
    if finished == 0 {
        return String::from("No run finished: there is nothing to compare.");
    }
    let spreads = all().flat_map(|comparison| comparison.spreads(measures));
    let least = spreads.map(|summary| summary.confidence).reduce(f64::min);
    let mut text = match least {
        Some(least) => format!(
            "Medians over the start phases, with the interval that holds the true median with a probability of {:.1} % \
             or more; ratios are taken phase by phase against the first row.",
            least * 100.0
        ),
        None => String::from(
            "Single figures, and ratios to the first row. There are no intervals, so what differs may be chance.",
        ),
    };
    if least.is_some_and(|least| least < CONFIDENCE) {
        text += " Six start phases or more make it 95 %.";
    }
    if finished < runs {
        let failed = runs - finished;
        text +=
            &format!(" {failed} of {runs} runs did not finish and have no part in the figures.");
    }
    if all().all(|comparison| comparison.seeds == 1) {
        text += " One start phase alone was run; more --seeds show how much is chance.";
    }
    text + &without_effect(comparisons)
}

/// Which rows' start phases were one run made often, and what to do about it.
fn without_effect(comparisons: &[(&str, &Comparison)]) -> String {
    let rows = || {
        let each = |(prefix, comparison): &(&str, &Comparison)| {
            let name = |row: &Row| (row.alike, format!("{prefix}{}", row.combination.label()));
            comparison.rows.iter().map(name).collect::<Vec<_>>()
        };
        comparisons.iter().flat_map(each)
    };
    let alike: Vec<String> = rows()
        .filter(|(alike, _)| *alike)
        .map(|(_, name)| name)
        .collect();
    if alike.is_empty() {
        return String::new();
    }
    let names = if alike.len() == rows().count() {
        String::from("every row")
    } else {
        alike.join(", ")
    };
    format!(
        "\nThe seeds had no effect: the runs of {names} agree in every figure, so they are one run. {WHAT_VARIES}"
    )
}
