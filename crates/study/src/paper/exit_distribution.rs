//! Distribution of a method's pause-loop exits (paper 004, figures 3 to 6): how many a wait has, and whose absence they are due to.

use crate::drawing::{self, Line, Page};
use crate::laboratory::statistics::{Summary, summarise};
use runner::measures::{HELD, WITHIN};
use runner::storms::Class;
use serde::{Deserialize, Serialize};

/// The medians over a method's start phases, with their intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The method.
    pub method: String,
    /// Which part of the waits, in per cent, had so many exits at most.
    pub within: Vec<(u64, Summary)>,
    /// Which part of the acquisitions, in per cent, held a lock for so many cycles at most.
    #[serde(default)]
    pub held: Vec<(u64, Summary)>,
    /// Which part of the waits, in per cent, took so many cycles at most.
    #[serde(default)]
    pub waited: Vec<(u64, Summary)>,
    /// The classes' parts of all exits, in per cent, in the order of their names.
    pub exits: Vec<f64>,
    /// The classes' parts of the time that waits went on after an exit, in per cent.
    pub time: Vec<f64>,
}

impl Spread {
    /// Of a method's values of measures; `None` if its runs had no waits. Where nothing exits, as natively, how many exits a wait has is left out.
    pub(super) fn of(method: &str, values: impl Fn(&str) -> Vec<f64>) -> Option<Self> {
        let part = |family: &str, most: &u64| {
            let name = format!("{family}.{most}");
            Some((*most, summarise(&values(&name))?))
        };
        let exits = values("pause-exits").iter().any(|exits| *exits > 0.0);
        let within = WITHIN.iter().filter(|_| exits);
        let within = within.filter_map(|most| part("exits-per-wait-within", most));
        let within: Vec<_> = within.collect();
        let times = |family| HELD.iter().filter_map(move |most| part(family, most));
        let held: Vec<_> = times("lock-hold-within").collect();
        let waited: Vec<_> = times("pause-wait-within").collect();
        if within.is_empty() && waited.is_empty() {
            return None;
        }
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
            within,
            held,
            waited,
            exits: parts("pause-exits"),
            time: parts("pause-time"),
        })
    }
}

/// Draws the methods of a case beside each other.
pub(super) fn draw(page: &mut Page, spreads: &[Spread]) {
    let lines = |parts: fn(&Spread) -> &Vec<(u64, Summary)>| -> Vec<Line> {
        let line = |spread: &Spread| Line {
            name: spread.method.clone(),
            points: parts(spread)
                .iter()
                .map(|(most, part)| (*most as f64, part.median, part.low, part.high))
                .collect(),
        };
        let drawn = spreads.iter().filter(|spread| !parts(spread).is_empty());
        drawn.map(line).collect()
    };
    let within = lines(|spread| &spread.within);
    page.figure(
        &drawing::lines(&within, "exits of a wait, at most", "waits (%)", &[]),
        "How many exits a wait has: the part of the waits that have so many at most",
    );
    let held = lines(|spread| &spread.held);
    if !held.is_empty() {
        page.figure(
            &drawing::lines(&held, "cycles, at most", "acquisitions (%)", &[]),
            "How long locks are held: the part of the acquisitions that take so many cycles at most",
        );
    }
    let waited = lines(|spread| &spread.waited);
    if !waited.is_empty() {
        page.figure(
            &drawing::lines(&waited, "cycles, at most", "waits (%)", &[]),
            "How long waits take, from the first exit (natively from the first turn of the loop): the part of the waits that take so many cycles at most",
        );
    }
    let classes = Class::ALL.map(Class::name);
    let rows = |parts: fn(&Spread) -> &Vec<f64>| -> Vec<(String, Vec<f64>)> {
        let each = spreads.iter().filter(|spread| !spread.within.is_empty());
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
    fn only_methods_with_waits_are_drawn() {
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
        values.insert(String::from("pause-exits"), vec![900.0, 1000.0, 1100.0]);
        values.insert(String::from("pause-exits.next-off"), vec![20.0, 30.0, 40.0]);
        let of = |measure: &str| values.get(measure).cloned().unwrap_or_default();
        let spread = Spread::of("yield", of).unwrap();
        assert_eq!(spread.within.len(), WITHIN.len());
        assert_eq!(spread.within[0].1.median, 70.0);
        assert_eq!(spread.held, []);
        assert_eq!(spread.exits, [0.0, 30.0, 0.0, 0.0, 0.0, 0.0]);
        let mut page = Page::new("t");
        draw(&mut page, &[spread]);
        let html = page.finish();
        assert!(html.contains("holder-off") && html.matches("<figure").count() == 3);
        // Half a microsecond and so on: where locks were held, that is drawn as well.
        values.insert(
            String::from("lock-hold-within.2048"),
            vec![99.0, 99.6, 99.9],
        );
        let of = |measure: &str| values.get(measure).cloned().unwrap_or_default();
        let spread = Spread::of("yield", of).unwrap();
        assert_eq!((spread.held.len(), spread.held[0].0), (1, 2048));
        let mut page = Page::new("t");
        draw(&mut page, &[spread]);
        assert_eq!(page.finish().matches("<figure").count(), 4);
        // Natively nothing exits, and only times are drawn.
        values.insert(String::from("pause-exits"), vec![0.0, 0.0, 0.0]);
        let name = String::from("pause-wait-within.8192");
        values.insert(name, vec![70.0, 80.0, 90.0]);
        let of = |measure: &str| values.get(measure).cloned().unwrap_or_default();
        let native = Spread::of("native", of).unwrap();
        assert_eq!((native.within.len(), native.waited.len()), (0, 1));
    }
}
