//! What a comparison with a paper's figures comes to.

use super::plan::Plan;
use super::published::NATIVE;
use super::{Case, Claim, Figure, Published};
use crate::laboratory::statistics::{Summary, paired_ratio, summarise};
use crate::laboratory::{Entry, Outcome};
use serde::Serialize;

/// Effects of the papers below this part are within what they call comparable.
const COMPARABLE: f64 = 0.005;

/// Whether an effect points the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// As in the paper, and our interval excludes that there is none.
    Same,
    /// The other way, and our interval excludes that there is none.
    Opposite,
    /// The paper has an effect, and our interval does not exclude that there is none.
    NotSeen,
    /// Neither has one that counts.
    None,
    /// The paper has none that counts, and we have one.
    New,
    /// One start phase alone was run: whatever it shows may be an accident.
    Unknown,
}

impl Direction {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "same direction",
            Self::Opposite => "OPPOSITE",
            Self::NotSeen => "not seen",
            Self::None => "none in either",
            Self::New => "ours alone",
            Self::Unknown => "one start phase: no verdict",
        }
    }
}

/// How large our effect is beside the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// Between half and twice.
    Alike,
    /// Below half.
    Smaller,
    /// Above twice.
    Larger,
}

impl Size {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Alike => "size alike",
            Self::Smaller => "smaller",
            Self::Larger => "larger",
        }
    }
}

/// One published value beside ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectResult {
    /// The measure.
    pub measure: String,
    /// The method.
    pub method: String,
    /// The paper's value.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: Option<Summary>,
    /// The paper's ratio to the first method.
    pub paper_ratio: Option<f64>,
    /// Ours, start phase by start phase.
    pub ratio: Option<Summary>,
    /// Whether both point the same way, if both are there.
    pub direction: Option<Direction>,
    /// How large ours is, where the direction is the same.
    pub size: Option<Size>,
    /// What is odd about the paper's.
    pub note: Option<String>,
}

/// A claim beside what we found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimResult {
    /// The claim.
    pub text: String,
    /// What we found, in words.
    pub found: String,
    /// Whether it holds; `None` if we cannot tell.
    pub holds: Option<bool>,
}

/// One case beside what we found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    /// The table.
    pub table: u32,
    /// The case.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Figure by figure.
    pub effects: Vec<EffectResult>,
    /// Claim by claim.
    pub claims: Vec<ClaimResult>,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
}

/// A negative beside what we found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NegativeResult {
    /// What it is.
    pub title: String,
    /// The largest effect that was found, as method and ratio.
    pub found: String,
    /// Whether there was none; `None` if one start phase alone cannot tell.
    pub holds: Option<bool>,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The paper.
    pub title: String,
    /// Where it appeared.
    pub source: String,
    /// The cases.
    pub cases: Vec<CaseResult>,
    /// The orders of effects.
    pub orders: Vec<ClaimResult>,
    /// The negatives.
    pub negatives: Vec<NegativeResult>,
}

impl Judgement {
    /// What makes the whole run fail: an effect where there can be none, or a run that failed.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for negative in &self.negatives {
            failures.extend(negative.failures.iter().cloned());
            if negative.holds == Some(false) {
                let (title, found) = (&negative.title, &negative.found);
                failures.push(format!(
                    "an effect where there can be none: {title}: {found}"
                ));
            }
        }
        failures.extend(
            self.cases
                .iter()
                .flat_map(|case| case.failures.iter().cloned()),
        );
        failures
    }
}

type Methods<'a> = [(String, &'a [Entry])];

/// Compares entries, in the order of the plan's points, with the paper.
pub fn judge(paper: &Published, plan: &Plan, entries: &[Entry]) -> Judgement {
    let groups = plan.divide(entries);
    let cases: Vec<CaseResult> = plan
        .cases
        .iter()
        .zip(&groups)
        .map(|((case, _), methods)| of_case(case, methods))
        .collect();
    let negatives = paper
        .negatives
        .iter()
        .zip(groups.iter().skip(plan.cases.len()))
        .map(|(negative, methods)| of_negative(negative, methods))
        .collect();
    let orders = paper.orders.iter().map(|order| of_order(order, &cases));
    Judgement {
        title: paper.title.clone(),
        source: paper.source.clone(),
        orders: orders.collect(),
        negatives,
        cases,
    }
}

fn of_case(case: &Case, methods: &Methods<'_>) -> CaseResult {
    let effects = case
        .figures
        .iter()
        .flat_map(|figure| {
            let of = |(method, _): &(String, &[Entry])| effect(figure, case, method, methods);
            methods.iter().map(of).collect::<Vec<_>>()
        })
        .filter(|effect| effect.paper.is_some() || effect.ours.is_some());
    CaseResult {
        table: case.table,
        name: case.name.clone(),
        title: case.title.clone(),
        effects: effects.collect(),
        claims: case
            .claims
            .iter()
            .map(|claim| of_claim(claim, methods))
            .collect(),
        failures: failures(
            &format!("table {}, case {}", case.table, case.name),
            methods,
        ),
    }
}

fn effect(figure: &Figure, case: &Case, method: &str, methods: &Methods<'_>) -> EffectResult {
    let base = case.methods.first().map_or("", String::as_str);
    let paper = figure.values.get(method).copied();
    let base_value = figure.values.get(base).copied();
    let paper_ratio = match (paper, base_value) {
        (Some(value), Some(base_value)) if method != base && base_value != 0.0 => {
            Some(value / base_value)
        }
        _ => None,
    };
    let ours = summarise(&values(methods, method, &figure.measure));
    let ratio = (method != base)
        .then(|| paired_ratio(&pairs(methods, method, base, &figure.measure)))
        .flatten();
    let direction = match (paper_ratio, &ratio) {
        (Some(paper), Some(ours)) => Some(direction(paper, ours)),
        _ => None,
    };
    let size = match (direction, paper_ratio, &ratio) {
        (Some(Direction::Same), Some(paper), Some(ours)) => Some(size(paper, ours)),
        _ => None,
    };
    EffectResult {
        measure: figure.measure.clone(),
        method: String::from(method),
        paper,
        ours,
        paper_ratio,
        ratio,
        direction,
        size,
        note: figure.note.clone(),
    }
}

/// Whether our ratio and the paper's lie on the same side of one.
pub(super) fn direction(paper: f64, ours: &Summary) -> Direction {
    let seen = ours.low > 1.0 || ours.high < 1.0;
    let counts = (paper - 1.0).abs() >= COMPARABLE;
    let ours_counts = seen && (ours.median - 1.0).abs() >= COMPARABLE;
    match (counts, seen) {
        _ if ours.count < 2 => Direction::Unknown,
        (false, _) if ours_counts => Direction::New,
        (false, _) => Direction::None,
        (true, false) => Direction::NotSeen,
        (true, true) if (paper > 1.0) == (ours.median > 1.0) => Direction::Same,
        (true, true) => Direction::Opposite,
    }
}

/// How large our effect is beside the paper's, both as logarithms so that halving and doubling are alike.
pub(super) fn size(paper: f64, ours: &Summary) -> Size {
    let part = ours.median.ln() / paper.ln();
    if part < 0.5 {
        Size::Smaller
    } else if part > 2.0 {
        Size::Larger
    } else {
        Size::Alike
    }
}

fn of_claim(claim: &Claim, methods: &Methods<'_>) -> ClaimResult {
    let summary = |method: &str| summarise(&values(methods, method, &claim.measure));
    let (Some(more), Some(less)) = (summary(&claim.more), summary(&claim.less)) else {
        return ClaimResult {
            text: claim.text.clone(),
            found: format!("{} is not known of both", claim.measure),
            holds: None,
        };
    };
    let number = crate::measures::number;
    let found = format!(
        "{}: {} {} [{} .. {}], {} {} [{} .. {}]",
        claim.measure,
        claim.more,
        number(more.median),
        number(more.low),
        number(more.high),
        claim.less,
        number(less.median),
        number(less.low),
        number(less.high)
    );
    // Intervals that overlap decide nothing; equal values decide that there is no difference.
    let holds = if more.count < 2 || less.count < 2 {
        None
    } else if more.low > less.high {
        Some(true)
    } else if more.median <= less.median {
        Some(false)
    } else {
        None
    };
    ClaimResult {
        text: claim.text.clone(),
        found,
        holds,
    }
}

fn of_order(order: &super::Order, cases: &[CaseResult]) -> ClaimResult {
    let ratio = |name: &String| {
        let case = cases.iter().find(|case| &case.name == name)?;
        let effect = case
            .effects
            .iter()
            .find(|effect| effect.measure == order.measure && effect.method == order.method)?;
        effect.ratio
    };
    let ratios: Option<Vec<Summary>> = order.cases.iter().map(ratio).collect();
    let Some(ratios) = ratios else {
        return ClaimResult {
            text: order.text.clone(),
            found: String::from("not all of its cases were run"),
            holds: None,
        };
    };
    let each = order.cases.iter().zip(&ratios);
    let each: Vec<String> = each
        .map(|(case, ratio)| format!("case {case} {:.4}", ratio.median))
        .collect();
    let ordered = ratios.is_sorted_by(|a, b| a.median >= b.median);
    ClaimResult {
        text: order.text.clone(),
        found: format!("{}: {}", order.measure, each.join(", ")),
        holds: (ratios.iter().all(|ratio| ratio.count > 1)).then_some(ordered),
    }
}

fn of_negative(negative: &super::Negative, methods: &Methods<'_>) -> NegativeResult {
    let base = negative.methods.first().map_or("", String::as_str);
    let tolerance = negative.tolerance / 100.0;
    let mut worst: Option<(String, Summary)> = None;
    let mut holds = true;
    let mut told = true;
    for (method, _) in methods.iter().filter(|(method, _)| method != base) {
        let pairs = pairs(methods, method, base, &negative.measure);
        let Some(ratio) = paired_ratio(&pairs) else {
            holds = false;
            continue;
        };
        // An effect is there if the whole interval lies beyond what counts as none.
        told &= ratio.count > 1;
        holds &= ratio.low <= 1.0 + tolerance && ratio.high >= 1.0 - tolerance;
        let distance = |ratio: &Summary| (ratio.median - 1.0).abs();
        if worst
            .as_ref()
            .is_none_or(|(_, worst)| distance(&ratio) > distance(worst))
        {
            worst = Some((method.clone(), ratio));
        }
    }
    let found = worst.map_or_else(
        || String::from("no runs to compare"),
        |(method, ratio)| {
            format!(
                "{} of {method} is {:.4} [{:.4} .. {:.4}] of {base}'s",
                negative.measure, ratio.median, ratio.low, ratio.high
            )
        },
    );
    NegativeResult {
        title: negative.title.clone(),
        found,
        holds: told.then_some(holds),
        failures: failures(&negative.title, methods),
    }
}

fn entries<'a>(methods: &'a Methods<'_>, method: &str) -> &'a [Entry] {
    let found = methods.iter().find(|(name, _)| name == method);
    found.map_or(&[], |(_, entries)| entries)
}

fn value(entry: &Entry, measure: &str) -> Option<f64> {
    entry.outcome.figures()?.get(measure).copied()
}

fn values(methods: &Methods<'_>, method: &str, measure: &str) -> Vec<f64> {
    // What is relative to native is computed phase by phase.
    if measure == "native-etr" {
        let pairs = pairs(methods, method, NATIVE, "etr");
        return pairs
            .iter()
            .map(|(ours, native)| 100.0 * ours / native)
            .collect();
    }
    let entries = entries(methods, method).iter();
    entries.filter_map(|entry| value(entry, measure)).collect()
}

fn pairs(methods: &Methods<'_>, method: &str, base: &str, measure: &str) -> Vec<(f64, f64)> {
    if measure == "native-etr" {
        return Vec::new();
    }
    let both = entries(methods, method).iter().zip(entries(methods, base));
    both.filter_map(|(entry, base)| Some((value(entry, measure)?, value(base, measure)?)))
        .collect()
}

fn failures(place: &str, methods: &Methods<'_>) -> Vec<String> {
    let all = methods
        .iter()
        .flat_map(|(method, entries)| entries.iter().map(move |entry| (method, entry)));
    all.filter_map(|(method, entry)| match &entry.outcome {
        Outcome::Failed(why) => Some(format!(
            "{place}, {method}, seed {}: {why}",
            entry.point.seed
        )),
        Outcome::Finished { .. } => None,
    })
    .collect()
}
