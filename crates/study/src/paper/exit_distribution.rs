//! Distribution of a method's pause-loop exits (paper 004, figures 3 to 6): how many a wait has, and whose absence they are due to.

use crate::drawing::{self, Line, Page};
use crate::laboratory::statistics::{Summary, summarise};
use runner::measures::{CYCLE_LIMITS, EXIT_LIMITS, FigureName, Measure};
use runner::storms::PauseExitClass;
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
        let member = |family, member: &str| values(FigureName::member(family, member).as_str());
        let part = |family, limit: &u64| {
            let values = member(family, &limit.to_string());
            Some((*limit, summarise(&values)?))
        };
        let exits = values(Measure::PauseExits.name());
        let exits = exits.iter().any(|exits| *exits > 0.0);
        let within = EXIT_LIMITS.iter().filter(|_| exits);
        let within = within.filter_map(|limit| part(Measure::ExitsPerWaitCdf, limit));
        let within: Vec<_> = within.collect();
        let times = |family| {
            let limits = CYCLE_LIMITS.iter();
            limits.filter_map(move |limit| part(family, limit))
        };
        let held: Vec<_> = times(Measure::LockHoldCdf).collect();
        let waited: Vec<_> = times(Measure::PauseWaitCdf).collect();
        if within.is_empty() && waited.is_empty() {
            return None;
        }
        let parts = |family| -> Vec<f64> {
            let classes = PauseExitClass::ALL.iter();
            let of_class = |class: &PauseExitClass| {
                let values = member(family, class.name());
                summarise(&values).map_or(0.0, |summary| summary.median)
            };
            classes.map(of_class).collect()
        };
        Some(Self {
            method: String::from(method),
            within,
            held,
            waited,
            exits: parts(Measure::PauseExitClasses),
            time: parts(Measure::PauseWaitShares),
        })
    }
}

/// Draws the methods of a case beside each other.
pub(crate) fn draw(page: &mut Page, spreads: &[Spread]) {
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
    let classes = PauseExitClass::ALL.map(PauseExitClass::name);
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
        let mut values: BTreeMap<String, Vec<f64>> = EXIT_LIMITS
            .iter()
            .map(|most| (format!("exits-per-wait-cdf.{most}"), vec![50.0, 70.0, 90.0]))
            .collect();
        values.insert(String::from("pause-exits"), vec![900.0, 1000.0, 1100.0]);
        values.insert(
            String::from("pause-exits.waiter-preempted"),
            vec![20.0, 30.0, 40.0],
        );
        let of = |measure: &str| values.get(measure).cloned().unwrap_or_default();
        let spread = Spread::of("yield", of).unwrap();
        assert_eq!(spread.within.len(), EXIT_LIMITS.len());
        assert_eq!(spread.within[0].1.median, 70.0);
        assert_eq!(spread.held, []);
        assert_eq!(spread.exits, [0.0, 30.0, 0.0, 0.0, 0.0, 0.0]);
        let mut page = Page::new("t");
        draw(&mut page, &[spread]);
        let html = page.finish();
        assert!(html.contains("holder-preempted") && html.matches("<figure").count() == 3);
        // Half a microsecond and so on: where locks were held, that is drawn as well.
        values.insert(String::from("lock-hold-cdf.2048"), vec![99.0, 99.6, 99.9]);
        let of = |measure: &str| values.get(measure).cloned().unwrap_or_default();
        let spread = Spread::of("yield", of).unwrap();
        assert_eq!((spread.held.len(), spread.held[0].0), (1, 2048));
        let mut page = Page::new("t");
        draw(&mut page, &[spread]);
        assert_eq!(page.finish().matches("<figure").count(), 4);
        // Natively nothing exits, and only times are drawn.
        values.insert(String::from("pause-exits"), vec![0.0, 0.0, 0.0]);
        let name = String::from("pause-wait-cdf.8192");
        values.insert(name, vec![70.0, 80.0, 90.0]);
        let of = |measure: &str| values.get(measure).cloned().unwrap_or_default();
        let native = Spread::of("native", of).unwrap();
        assert_eq!((native.within.len(), native.waited.len()), (0, 1));
    }
}
