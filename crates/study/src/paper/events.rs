//! Costs of events, each beside another's (paper 001, table 1).

use super::figures::{Cost, EventCost};
use super::result::{EventCostResult, Question};
use super::runs::{is_one, phases};
use crate::laboratory::Entry;
use crate::laboratory::statistics::{Summary, paired_ratio, ratios, summarise};
use crate::laboratory::verdict::{Answer, Evidence};
use runner::table::Table;
use runner::table::number;

/// The runs of a case by method, and the case's name.
pub(super) type Cases<'a> = [(&'a str, &'a [(String, &'a [Entry])])];

/// Computes an event's cost.
pub(super) fn of_event(event: &EventCost, cases: &Cases<'_>) -> EventCostResult {
    let values = |cost: &Cost| -> Vec<Option<f64>> {
        let case = cases.iter().find(|(name, _)| *name == cost.case);
        let methods = case.map_or(&[][..], |(_, methods)| methods);
        phases(methods, &cost.method, &cost.measures)
    };
    let summary = |cost: &Cost| summarise(&Vec::from_iter(values(cost).into_iter().flatten()));
    let both = values(&event.cost).into_iter().zip(values(&event.beside));
    let pairs: Vec<(f64, f64)> = both.filter_map(|(cost, beside)| cost.zip(beside)).collect();
    let same = |cost: &Cost| {
        let case = cases.iter().find(|(name, _)| *name == cost.case);
        case.is_some_and(|(_, methods)| is_one(methods, &cost.method))
    };
    let evidence = |[low, high]: [f64; 2]| match same(&event.cost) {
        true => Evidence::of_one_run(),
        false => Evidence::of_band(&ratios(&pairs), low, high),
    };
    let judged = event.paper.filter(|_| !pairs.is_empty());
    EventCostResult {
        event: event.event.clone(),
        condition: event.condition.clone(),
        cost: summary(&event.cost),
        instructions: summary(&event.cost.in_instructions()),
        beside: summary(&event.beside),
        ratio: paired_ratio(&pairs),
        paper: event.paper,
        question: judged.map(|paper| Question::new(evidence(paper))),
    }
}

impl EventCostResult {
    /// Returns whether its ratio lies where the paper's does, if that is judged. Phases that agree in every figure are one run, and decide nothing: where
    /// the ratio lies is told all the same.
    pub fn words(&self) -> Option<String> {
        let question = self.question.as_ref()?;
        let Answer::Refused { phases: 1, .. } = question.answer else {
            return Some(question.as_absolute());
        };
        let place = match (self.paper, &self.ratio) {
            (Some([_, high]), Some(ratio)) if ratio.median > high => "above the paper's",
            (Some([low, _]), Some(ratio)) if ratio.median < low => "below the paper's",
            (Some(_), Some(_)) => "within the paper's",
            _ => return Some(question.as_absolute()),
        };
        Some(format!("one run: {place}"))
    }
}

/// The table.
pub(super) fn table(events: &[EventCostResult]) -> Table {
    let mut table = Table::new([
        "event",
        "condition",
        "beside, cycles",
        "cycles",
        "instructions",
        "ratio",
        "interval",
        "paper",
        "verdict",
    ]);
    let mut last = "";
    for event in events {
        let name = if event.event == last {
            ""
        } else {
            &event.event
        };
        last = &event.event;
        let median = |summary: &Option<Summary>| {
            let text = summary.as_ref().map(|summary| number(summary.median));
            text.unwrap_or_else(|| String::from("-"))
        };
        let interval = event.ratio.as_ref().map_or_else(String::new, |ratio| {
            format!("{} .. {}", number(ratio.low), number(ratio.high))
        });
        let paper = event.paper.map_or_else(String::new, |[low, high]| {
            if low == high {
                number(low)
            } else {
                format!("{low} .. {high}")
            }
        });
        table.row([
            String::from(name),
            event.condition.clone(),
            median(&event.beside),
            median(&event.cost),
            median(&event.instructions),
            median(&event.ratio),
            interval,
            paper,
            event.words().unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::{MadeBy, Outcome, Point};
    use runner::measures::{Figures, Measure};
    use system::fingerprint::Fingerprint;

    fn entries(values: &[f64]) -> Vec<Entry> {
        let entry = |value: &f64| Entry {
            id: Fingerprint::of(b"id"),
            point: Point::default(),
            made_by: MadeBy::default(),
            outcome: Outcome::of_figures(Figures::from([
                (Measure::CyclesPerEvent, *value),
                (Measure::InstructionsPerEvent, *value / 2.0),
            ])),
        };
        values.iter().map(entry).collect()
    }

    fn cost(case: &str, method: &str) -> Cost {
        Cost {
            case: String::from(case),
            method: String::from(method),
            measures: vec![String::from("cycles-per-event")],
        }
    }

    fn event(paper: [f64; 2]) -> EventCost {
        EventCost {
            event: String::from("fence"),
            condition: String::from("shadow"),
            cost: cost("fence", "shadow"),
            beside: cost("fence", "native"),
            paper: Some(paper),
        }
    }

    fn found(shadow: &[f64], paper: [f64; 2]) -> EventCostResult {
        let (shadow, native) = (entries(shadow), entries(&vec![10.0; shadow.len()]));
        let methods = [
            (String::from("shadow"), &shadow[..]),
            (String::from("native"), &native[..]),
        ];
        let mut result = of_event(&event(paper), &[("fence", &methods)]);
        Question::settle(result.question.iter_mut().collect());
        result
    }

    #[test]
    fn ratio_is_taken_each_phase() {
        let values: Vec<f64> = (0..12).map(|phase| 300.0 + f64::from(phase)).collect();
        let result = found(&values, [20.0, 50.0]);
        assert_eq!(result.ratio.unwrap().median, 30.55);
        assert_eq!(result.instructions.unwrap().median, 152.75);
        let text = table(&[result]).to_string();
        assert!(text.contains("as in the paper"), "{text}");
        let above = found(&values, [2.0, 5.0]);
        let text = table(&[above]).to_string();
        assert!(text.contains("MORE THAN IN THE PAPER"), "{text}");
    }

    #[test]
    fn repeated_run_decides_nothing() {
        let text = table(&[found(&[300.0; 12], [40.0, 50.0])]).to_string();
        assert!(text.contains("one run: below the paper's"), "{text}");
    }

    #[test]
    fn unrun_case_has_no_cost() {
        let result = of_event(&event([1.0, 2.0]), &[]);
        assert_eq!((result.cost, result.question), (None, None));
    }
}
