//! Ranking by a measure, and how sure it is.

use super::row::Row;
use crate::laboratory::Entry;
use crate::laboratory::statistics::{Summary, paired_ratio, ratios};
use crate::laboratory::verdict::{Answer, Evidence, decide, refusal};
use runner::measures::{Better, Measure};
use runner::table::number;
use serde::Serialize;

/// The rows in their order by a measure of which more, or less, is better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranking {
    /// The measure.
    pub measure: String,
    /// The combinations, the best first, by their medians.
    pub order: Vec<String>,
    /// The best as a part of the next, start phase by start phase.
    pub lead: Option<Summary>,
    /// Verdict of the start phases on the lead, together with all other pairs of rows.
    pub answer: Answer,
    /// How many pairs of rows that are: the best and the next are known from the runs alone.
    pub comparisons: usize,
    /// The smallest lead that counts, as a part.
    pub smallest: f64,
    /// Set if the lead has no interval: it comes from one start phase, or from one run that was made often.
    pub is_one_run: bool,
}

/// The ranking by a measure of groups of runs, each the runs of a row; `None` where fewer than two have it, or where neither
/// more nor less of it is better.
pub(super) fn rank(
    measure: Measure,
    rows: &[Row],
    groups: &[&[Entry]],
    smallest: f64,
) -> Option<Ranking> {
    let (name, better) = (measure.name(), measure.better());
    if better == Better::Neither {
        return None;
    }
    let median = |row: &Row| {
        let cell = row.cells.iter().find(|cell| cell.measure == name)?;
        Some(cell.value.median)
    };
    let medians = rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| Some((index, median(row)?)));
    let mut order: Vec<(usize, f64)> = medians.collect();
    order.sort_by(|a, b| match better {
        Better::More => b.1.total_cmp(&a.1),
        _ => a.1.total_cmp(&b.1),
    });
    let [(best, _), (next, _), ..] = order[..] else {
        return None;
    };
    let value = |entry: &Entry| entry.outcome.figures()?.get(measure);
    let runs = |row: usize| groups.get(row).copied().unwrap_or_default();
    let pairs = |row: usize, other: usize| -> Vec<(f64, f64)> {
        let pairs = runs(row).iter().zip(runs(other));
        let both = pairs.filter_map(|(a, b)| Some((value(a)?, value(b)?)));
        both.collect()
    };
    let lead = paired_ratio(&pairs(best, next));
    let label = |row: usize| {
        rows.get(row)
            .map_or_else(String::new, |row| row.combination.label())
    };
    let is_one_run = |row: usize| rows.get(row).is_none_or(|row| row.alike);
    // Every pair of rows could have been the first two, so all of them are decided together; these two come first.
    let places = || order.iter().map(|(row, _)| *row).enumerate();
    let all = places().flat_map(|(place, row)| {
        let after = places().skip(place + 1);
        after.map(move |(_, other)| (row, other))
    });
    let evidence: Vec<Evidence> = all
        .map(|(row, other)| match is_one_run(row) || is_one_run(other) {
            true => Evidence::of_one_run(),
            false => Evidence::of_ratio(&ratios(&pairs(row, other)), smallest),
        })
        .collect();
    let answer = decide(&evidence).first().copied().unwrap_or(Answer::Open);
    let lead_is_one_run =
        lead.is_some_and(|lead| lead.count < 2) || is_one_run(best) || is_one_run(next);
    Some(Ranking {
        measure: String::from(name),
        order: order.iter().map(|(row, _)| label(*row)).collect(),
        lead,
        answer,
        comparisons: evidence.len(),
        smallest,
        is_one_run: lead_is_one_run,
    })
}

impl Ranking {
    /// In a line.
    pub fn line(&self) -> String {
        let [best, next, rest @ ..] = &self.order[..] else {
            return String::new();
        };
        let rest = match rest {
            [] => String::new(),
            rest => format!("; then {}", rest.join(", ")),
        };
        let lead = match &self.lead {
            Some(lead) if !self.is_one_run => format!(
                "{} [{}, {}]",
                number(lead.median),
                number(lead.low),
                number(lead.high)
            ),
            Some(lead) => format!("{}, from one run,", number(lead.median)),
            None => String::from("no ratio"),
        };
        let beyond = match self.smallest {
            0.0 => String::new(),
            smallest => format!(" within {} %", number(smallest * 100.0)),
        };
        let line = match self.answer {
            Answer::Above | Answer::Below => {
                format!("best: {best}, {lead} of the next, {next}{rest}")
            }
            Answer::Within => format!("equal{beyond}: {best} is {lead} of {next}{rest}"),
            Answer::Open => format!("undecided: {best} is {lead} of {next}{rest}"),
            Answer::Refused { phases, needed } => {
                let why = refusal(phases, needed);
                format!("{why}: {best} is {lead} of {next}{rest}")
            }
        };
        match self.comparisons {
            0 | 1 => line,
            all => format!("{line} ({all} pairs, decided together)"),
        }
    }
}
