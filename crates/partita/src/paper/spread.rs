//! What a method's pause-loop exits are like (paper 004, figures 3 to 6): how many a wait has, and whose absence they are due to.

use crate::drawing::{self, Line, Page};
use crate::laboratory::statistics::{Summary, summarise};
use crate::measures::WITHIN;
use crate::storms::Class;
use serde::{Deserialize, Serialize};

/// The medians over a method's start phases, with their intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The method.
    pub method: String,
    /// Which part of the waits, in per cent, had so many exits at most.
    pub within: Vec<(u64, Summary)>,
    /// The classes' parts of all exits, in per cent, in the order of their names.
    pub exits: Vec<f64>,
    /// The classes' parts of the time that waits went on after an exit, in per cent.
    pub time: Vec<f64>,
}

impl Spread {
    /// Of a method's values of measures; `None` if its runs had no waits with exits.
    pub(super) fn of(method: &str, values: impl Fn(&str) -> Vec<f64>) -> Option<Self> {
        let part = |most: &u64| {
            let name = format!("exits-per-wait-within.{most}");
            Some((*most, summarise(&values(&name))?))
        };
        let within: Option<Vec<_>> = WITHIN.iter().map(part).collect();
        let parts = |family: &str| -> Vec<f64> {
            let classes = Class::ALL.iter();
            classes
                .map(|class| {
                    let values = values(&format!("{family}.{}", class.name()));
                    summarise(&values).map_or(0.0, |summary| summary.median)
                })
                .collect()
        };
        Some(Self {
            method: String::from(method),
            within: within?,
            exits: parts("pause-exits"),
            time: parts("pause-time"),
        })
    }
}

/// Draws the methods of a case beside each other.
pub(super) fn draw(page: &mut Page, spreads: &[Spread]) {
    let lines: Vec<Line> = spreads
        .iter()
        .map(|spread| Line {
            name: spread.method.clone(),
            points: spread
                .within
                .iter()
                .map(|(most, part)| (*most as f64, part.median, part.low, part.high))
                .collect(),
        })
        .collect();
    page.figure(
        &drawing::lines(&lines, "exits of a wait, at most", "waits (%)", &[]),
        "How many exits a wait has: the part of the waits that have so many at most",
    );
    let classes = Class::ALL.map(Class::name);
    let rows = |parts: fn(&Spread) -> &Vec<f64>| -> Vec<(String, Vec<f64>)> {
        let each = spreads.iter();
        each.map(|spread| (spread.method.clone(), parts(spread).clone()))
            .collect()
    };
    page.paragraph("Exits by class: whose absence they are due to.");
    page.figure(
        &drawing::shares(&classes, &rows(|spread| &spread.exits)),
        "Shares of exits by class, medians",
    );
    page.paragraph("The time for which waits went on after an exit, by the class of that exit.");
    page.figure(
        &drawing::shares(&classes, &rows(|spread| &spread.time)),
        "Shares of waiting time by class, medians",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_method_without_waits_has_nothing_to_draw_and_one_with_waits_all_of_it() {
        assert_eq!(Spread::of("yield", |_| Vec::new()), None);
        let mut values: BTreeMap<String, Vec<f64>> = WITHIN
            .iter()
            .map(|most| {
                (
                    format!("exits-per-wait-within.{most}"),
                    vec![50.0, 70.0, 90.0],
                )
            })
            .collect();
        values.insert(String::from("pause-exits.next-off"), vec![20.0, 30.0, 40.0]);
        let of = |measure: &str| values.get(measure).cloned().unwrap_or_default();
        let spread = Spread::of("yield", of).unwrap();
        assert_eq!(spread.within.len(), WITHIN.len());
        assert_eq!(spread.within[0].1.median, 70.0);
        assert_eq!(spread.exits, [0.0, 30.0, 0.0, 0.0, 0.0, 0.0]);
        let mut page = Page::new("t");
        draw(&mut page, &[spread]);
        let html = page.finish();
        assert!(html.contains("holder-off") && html.matches("<figure").count() == 3);
    }
}
