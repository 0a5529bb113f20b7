//! Power of a plan's start phases, before anything is run.
//!
//! The plan is judged with figures that are made up: every run has every measure that the paper names, each method has more of it than the
//! one before, and the phases agree about that: all of them, or all but one in ten. What is not decided by phases that all agree cannot be an
//! effect, whatever the runs will say; what one phase in ten can leave open is not worth a registration.

use super::judge::judge;
use super::plan::Plan;
use super::registration::State;
use super::{Judgement, Published, Question};
use crate::laboratory::verdict::{Answer, dissenting, refusal};
use crate::laboratory::{Entry, MadeBy, Outcome, Point};
use runner::measures::{FigureName, Figures, Measure};
use system::fingerprint::Fingerprint;

/// Measures from which those relative to the native run are computed (`measures::relative`).
const COMPARED: [Measure; 3] = [
    Measure::Throughput,
    Measure::CompletionsPerBusySecond,
    Measure::CyclesPerEvent,
];

/// Agreement of the made-up phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// All agree.
    All,
    /// One in ten, and at least one, has it the other way round.
    NineInTen,
}

/// Questions that the phases of a plan cannot decide, a line each. Costs of events are left out: they may be of one run, and say so.
pub fn too_few(paper: &Published, plan: &Plan, agreement: Agreement) -> Vec<String> {
    let entries = made_up(paper, plan, agreement);
    undecidable(&judge(paper, plan, &entries, State::Never))
}

/// An entry for each run, in the order of the plan's points.
fn made_up(paper: &Published, plan: &Plan, agreement: Agreement) -> Vec<Entry> {
    let figures = paper.cases.iter().flat_map(|case| {
        let figures = case.figures.iter().map(|figure| &figure.measure);
        figures.chain(case.claims.iter().map(|claim| &claim.measure))
    });
    let negatives = paper.negatives.iter().map(|negative| &negative.measure);
    let named = figures.chain(negatives).map(String::as_str);
    let names: Vec<FigureName> = named
        .filter_map(FigureName::find)
        .chain(COMPARED.map(FigureName::from))
        .collect();
    let entry = |method: usize, phase: usize, phases: usize, point: &Point| {
        let dissents = agreement == Agreement::NineInTen && phase < dissenting(phases);
        let direction = if dissents { -1 } else { 1 };
        // Phases that agree in every figure are one run. No value of a paper's is as large, so that those held to its own are decided, too.
        let value = 1e12 * 4.0_f64.powi(direction * method as i32) * (1.0 + phase as f64);
        let figures: Figures = names.iter().map(|name| (name.clone(), value)).collect();
        Entry {
            id: Fingerprint::of(b""),
            point: point.clone(),
            made_by: MadeBy::default(),
            outcome: Outcome::of_figures(figures),
        }
    };
    let groups = plan.cases.iter().map(|(_, group)| group);
    let mut entries = Vec::new();
    for group in groups.chain(&plan.negatives) {
        for (method, (_, points)) in group.methods.iter().enumerate() {
            let phases = points.iter().enumerate();
            let all = points.len();
            entries.extend(phases.map(|(phase, point)| entry(method, phase, all, point)));
        }
    }
    entries
}

fn undecidable(judgement: &Judgement) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tell = |place: String, question: &Question| match question.answer {
        // What no run has is left out, and not refused for its phases.
        Answer::Refused {
            phases: phases @ 1..,
            needed,
        } => lines.push(format!("{place}: {}", refusal(phases, needed))),
        Answer::Open => {
            lines.push(format!(
                "{place}: one phase in ten that differs leaves it open"
            ));
        }
        _ => {}
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
