//! What a plan's start phases can decide at best, before anything is run.
//!
//! The plan is judged with figures that are made up: every run has every measure that the paper names, and all phases agree. What is
//! refused even then is refused whatever the runs will say.

use super::judge::judge;
use super::plan::Plan;
use super::published::NATIVE;
use super::registration::State;
use super::{Judgement, Published, Question};
use crate::laboratory::verdict::{Answer, refusal};
use crate::laboratory::{Entry, Figures, Fingerprint, MadeBy, Outcome, Point};
use std::collections::BTreeMap;

/// What measures that compare with the native run are computed from (`measures::relative`).
const COMPARED: [&str; 3] = ["etr", "itr", "event-cycles"];

/// What the phases of a plan cannot decide, a line each. Costs of events are left out: they may be of one run, and say so.
pub fn too_few(paper: &Published, plan: &Plan) -> Vec<String> {
    let judgement = judge(paper, plan, &made_up(paper, plan), State::Never);
    undecidable(&judgement)
}

/// An entry for each run, in the order of the plan's points.
fn made_up(paper: &Published, plan: &Plan) -> Vec<Entry> {
    let figures = paper.cases.iter().flat_map(|case| {
        let figures = case.figures.iter().map(|figure| &figure.measure);
        figures.chain(case.claims.iter().map(|claim| &claim.measure))
    });
    let negatives = paper.negatives.iter().map(|negative| &negative.measure);
    let named = figures.chain(negatives).map(String::as_str);
    let names: Vec<&str> = named.chain(COMPARED).collect();
    let entry = |method: &str, phase: usize, point: &Point| {
        // Phases differ, as those that agree in every figure are one run. The native run has more of everything, so that what is
        // relative to it is not 0.
        let beside = if method == NATIVE { 2.0 } else { 1.0 };
        let value = beside * (1.0 + phase as f64);
        let figures: Figures = names
            .iter()
            .map(|name| (String::from(*name), value))
            .collect();
        Entry {
            id: Fingerprint::of(b""),
            point: point.clone(),
            made_by: MadeBy {
                partita: String::new(),
                system: String::new(),
                profile: None,
                files: BTreeMap::new(),
            },
            outcome: Outcome::Finished {
                figures,
                report: serde_json::Value::Null,
            },
        }
    };
    let groups = plan.cases.iter().map(|(_, group)| group);
    let methods = groups
        .chain(&plan.negatives)
        .flat_map(|group| &group.methods);
    let mut entries = Vec::new();
    for (method, points) in methods {
        let phases = points.iter().enumerate();
        entries.extend(phases.map(|(phase, point)| entry(method, phase, point)));
    }
    entries
}

fn undecidable(judgement: &Judgement) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tell = |place: String, question: &Question| {
        // What no run has is left out, and not refused for its phases.
        if let Answer::Refused { phases: phases @ 1.., needed } = question.answer {
            lines.push(format!("{place}: {}", refusal(phases, needed)));
        }
    };
    for case in &judgement.cases {
        let place = |what: &str| match case.table {
            0 => format!("{}: {what}", case.name),
            table => format!("table {table}, case {}: {what}", case.name),
        };
        for effect in &case.effects {
            let what = || format!("{} of {}", effect.measure, effect.method);
            if let Some(question) = &effect.question {
                tell(place(&what()), question);
            }
        }
        for one in &case.absolutes {
            let what = format!("the value of {} of {}", one.measure, one.method);
            tell(place(&what), &one.question);
        }
        for claim in &case.claims {
            tell(place(&claim.text), &claim.question);
        }
    }
    for order in &judgement.orders {
        tell(order.text.clone(), &order.question);
    }
    for negative in &judgement.negatives {
        tell(negative.title.clone(), &negative.question);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::Computer;
    use crate::paper::{PROFILE, Wanted};
    use std::path::Path;

    fn told(paper: &str, seeds: u32) -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let folder = folder.join(paper);
        let paper = Published::read(&folder.join("published.toml")).unwrap();
        let computer = Computer::Machine {
            profile: Some(String::from(PROFILE)),
        };
        let wanted = Wanted {
            table: Some(1),
            quick: false,
            seeds,
            computer,
            hertz: Some(45_000_000),
        };
        too_few(&paper, &Plan::new(&paper, &folder, &wanted).unwrap())
    }

    #[test]
    fn few_phases_are_told_before_any_is_run() {
        let few = told("paper-002", 2);
        let etr = "table 1, case 5: etr of self-wait-all: refused: 2 phases cannot tell; ";
        assert!(few.iter().any(|line| line.starts_with(etr)), "{few:#?}");
        let value = "table 1, case 5: the value of native-etr of self-wait-all: refused: ";
        assert!(few.iter().any(|line| line.starts_with(value)), "{few:#?}");
        let claim = "case 5: self-waiting takes less than a hundredth of";
        assert!(few.iter().any(|line| line.contains(claim)), "{few:#?}");
        assert_eq!(told("paper-002", 20), Vec::<String>::new());
    }

    #[test]
    fn as_many_as_a_refusal_asks_for_are_enough() {
        let few = told("paper-002", 3);
        let needed = |line: &String| {
            let (_, rest) = line.split_once("cannot tell; ").unwrap();
            let (number, _) = rest.split_once(' ').unwrap();
            number.parse::<u32>().unwrap()
        };
        let needed = few.iter().map(needed).max().unwrap();
        assert!(!told("paper-002", needed - 1).is_empty());
        assert_eq!(told("paper-002", needed), Vec::<String>::new());
    }
}
