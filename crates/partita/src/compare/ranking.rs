//! Who is best by a measure, and how sure that is.

use super::Row;
use crate::laboratory::Entry;
use crate::laboratory::statistics::{Summary, paired_ratio};
use crate::measures::{self, Better, number};
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
    /// Whether the lead's whole interval is on one side of one.
    pub is_told: bool,
    /// Whether the lead has no interval: it comes from one start phase, or from one run that was made often.
    pub is_one_run: bool,
}

/// The ranking by a measure of groups of runs, each the runs of a row; `None` where fewer than two have it, or where neither
/// more nor less of it is better.
pub(super) fn rank(measure: &str, rows: &[Row], groups: &[&[Entry]]) -> Option<Ranking> {
    let better = measures::find(measure)?.better;
    if better == Better::Neither {
        return None;
    }
    let median = |row: &Row| {
        let cell = row.cells.iter().find(|cell| cell.measure == measure)?;
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
    let value = |entry: &Entry| entry.outcome.figures()?.get(measure).copied();
    let runs = |row: usize| groups.get(row).copied().unwrap_or_default();
    let pairs = runs(best).iter().zip(runs(next));
    let pairs: Vec<(f64, f64)> = pairs
        .filter_map(|(a, b)| Some((value(a)?, value(b)?)))
        .collect();
    let lead = paired_ratio(&pairs);
    let label = |row: usize| {
        rows.get(row)
            .map_or_else(String::new, |row| row.combination.label())
    };
    let has_spread = |lead: &Summary| {
        let rows = [best, next].map(|row| rows.get(row));
        rows.iter().flatten().all(|row| row.has_spread(lead))
    };
    let lead_is_one_run = lead.is_some_and(|lead| !has_spread(&lead));
    let is_told = lead.is_some_and(|lead| has_spread(&lead) && (lead.low > 1.0 || lead.high < 1.0));
    Some(Ranking {
        measure: String::from(measure),
        order: order.iter().map(|(row, _)| label(*row)).collect(),
        lead,
        is_told,
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
        if self.is_told {
            format!("best: {best}, {lead} of the next, {next}{rest}")
        } else {
            format!("undecided: {best} is {lead} of {next}{rest}")
        }
    }
}
