//! How runs become a comparison with a paper.

use super::curve;
use super::events;
use super::exit_distribution::Spread;
use super::gain;
use super::model;
use super::plan::Plan;
use super::registration::State;
use super::relation::Relation;
use super::result::EventCostResult;
use super::result::{
    AbsoluteResult, CaseResult, ClaimResult, EffectResult, Family, Judgement, NegativeResult,
    Question, Size,
};
use super::runs::{Methods, failures, one_run, pairs, values};
use super::{Case, Claim, Figure, Negative, Order, Published};
use crate::laboratory::Entry;
use crate::laboratory::statistics::{Summary, paired_ratio, ratios, summarise};
use crate::laboratory::verdict::{Answer, Evidence, Said, Verdict};

/// Compares entries, in the order of the plan's points, with the paper.
pub fn judge(paper: &Published, plan: &Plan, entries: &[Entry], registration: State) -> Judgement {
    let groups = plan.divide(entries);
    let (smallest, reason) = paper.smallest_effect();
    let mut cases: Vec<CaseResult> = plan
        .cases
        .iter()
        .zip(&groups)
        .map(|((case, _), methods)| of_case(paper, case, methods))
        .collect();
    let mut negatives: Vec<NegativeResult> = paper
        .negatives
        .iter()
        .zip(groups.iter().skip(plan.cases.len()))
        .map(|(negative, methods)| of_negative(negative, methods))
        .collect();
    let orders = paper.orders.iter().map(|order| of_order(order, &cases));
    let mut orders: Vec<(u32, ClaimResult)> = orders.collect();
    let mut families = Vec::new();
    for table in paper.tables() {
        let mut questions = Vec::new();
        for case in cases.iter_mut().filter(|case| case.table == table) {
            let effects = case.effects.iter_mut();
            questions.extend(effects.filter_map(|effect| effect.question.as_mut()));
            questions.extend(case.absolutes.iter_mut().map(|one| &mut one.question));
            questions.extend(case.claims.iter_mut().map(|one| &mut one.question));
        }
        let own = orders.iter_mut().filter(|(of, _)| *of == table);
        questions.extend(own.map(|(_, order)| &mut order.question));
        let name = match table {
            0 => String::from("The text"),
            table => format!("Table {table}"),
        };
        families.push((name, Question::settle(questions)));
    }
    let named: Vec<_> = plan.cases.iter().zip(&groups).collect();
    let named: Vec<_> = named
        .iter()
        .map(|((case, _), methods)| (case.name.as_str(), methods.as_slice()))
        .collect();
    let events = paper.events.iter();
    let mut events: Vec<EventCostResult> = events
        .map(|event| events::of_event(event, &named))
        .filter(|event| event.cost.is_some())
        .collect();
    let own = events.iter_mut();
    let questions = own.filter_map(|one| one.question.as_mut()).collect();
    families.push((String::from("Costs of events"), Question::settle(questions)));
    let questions = negatives.iter_mut().map(|one| &mut one.question).collect();
    families.push((String::from("Negatives"), Question::settle(questions)));
    for effect in cases.iter_mut().flat_map(|case| &mut case.effects) {
        conclude(effect);
    }
    let family = |(name, comparisons)| Family { name, comparisons };
    let families = families.into_iter().map(family);
    let (gains, curves) = (paper.gains.iter(), paper.curves.iter());
    let bars = paper.bars.iter();
    Judgement {
        title: paper.title.clone(),
        source: paper.source.clone(),
        smallest_effect: (smallest, reason),
        registration,
        orders: orders.into_iter().map(|(_, order)| order).collect(),
        families: families.filter(|family| family.comparisons > 0).collect(),
        gains: gains.map(|one| gain::of_cases(one, &cases)).collect(),
        events,
        curves: curves
            .map(|one| curve::of_cases(one, &cases))
            .filter(|curve| !curve.lines.is_empty())
            .collect(),
        bars: bars
            .map(|one| curve::of_bars(one, &cases))
            .filter(|bars| !bars.bars.is_empty())
            .collect(),
        negatives,
        cases,
    }
}

/// Concludes on an effect whose table is decided.
fn conclude(effect: &mut EffectResult) {
    if let (Some(said), Some(question)) = (effect.said, effect.question) {
        effect.verdict = Some(Verdict::of(said, question.answer));
    }
    if let (Some(Verdict::AsInThePaper), Some(paper), Some(ours)) =
        (effect.verdict, effect.paper_ratio, &effect.ratio)
    {
        effect.size = Size::of(paper, ours);
    }
}

fn of_case(paper: &Published, case: &Case, methods: &Methods<'_>) -> CaseResult {
    let (smallest, _) = paper.smallest_effect();
    let effects = case.figures.iter().flat_map(|figure| {
        let of = |(method, _): &(String, &[Entry])| {
            effect(figure, paper.base(case, method), method, methods, smallest)
        };
        methods.iter().map(of).collect::<Vec<_>>()
    });
    let absolutes = case.figures.iter().flat_map(|figure| {
        let of = |(method, _): &(String, &[Entry])| absolute(figure, method, methods);
        methods.iter().filter_map(of).collect::<Vec<_>>()
    });
    let claims = case.claims.iter();
    let place = format!("table {}, case {}", case.table, case.name);
    CaseResult {
        table: case.table,
        name: case.name.clone(),
        title: case.title.clone(),
        effects: effects
            .filter(|effect| effect.paper.is_some() || effect.ours.is_some())
            .collect(),
        absolutes: absolutes.collect(),
        claims: claims.map(|claim| of_claim(claim, methods)).collect(),
        model: model::of_case(case, |method, measure| values(methods, method, measure)),
        relations: relations(case, methods),
        spreads: spreads(case, methods),
        failures: failures(&place, methods),
    }
}

fn spreads(case: &Case, methods: &Methods<'_>) -> Vec<Spread> {
    let drawn = methods.iter().filter(|_| case.storms);
    let each =
        drawn.map(|(method, _)| Spread::of(method, |measure| values(methods, method, measure)));
    each.flatten().collect()
}

fn relations(case: &Case, methods: &Methods<'_>) -> Vec<Relation> {
    let of = |against| {
        methods
            .iter()
            .map(move |(method, entries)| Relation::of(against, method, entries))
    };
    case.against.iter().flat_map(of).collect()
}

fn effect(
    figure: &Figure,
    base: &str,
    method: &str,
    methods: &Methods<'_>,
    smallest: f64,
) -> EffectResult {
    let paper = figure.values.get(method).copied();
    let base_value = figure.values.get(base).copied();
    let paper_ratio = match (paper, base_value) {
        (Some(value), Some(base_value)) if method != base && base_value != 0.0 => {
            Some(value / base_value)
        }
        _ => None,
    };
    let pairs = match method == base {
        true => Vec::new(),
        false => pairs(methods, method, base, &figure.measure),
    };
    let ratios = ratios(&pairs);
    let is_fitted = figure.fitted.iter().any(|fitted| fitted == method);
    let said = paper_ratio.map(|ratio| Said::by_ratio(ratio, smallest));
    // What no run has is nothing to judge; what runs have, and too few of them, is refused.
    let is_judged = said.is_some() && !is_fitted && !pairs.is_empty();
    let evidence = || match one_run(methods, &[method, base]) {
        true => Evidence::of_one_run(),
        false => Evidence::of_ratio(&ratios, smallest),
    };
    EffectResult {
        measure: figure.measure.clone(),
        method: String::from(method),
        paper,
        ours: summarise(&values(methods, method, &figure.measure)),
        paper_ratio,
        ratio: paired_ratio(&pairs),
        said,
        question: is_judged.then(|| Question::new(evidence())),
        verdict: is_fitted.then_some(Verdict::Fitted),
        size: None,
        note: figure.note.clone(),
        ratios,
    }
}

/// A value that is held to the paper's own; `None` where that is not asked, or the value was fitted to it.
fn absolute(figure: &Figure, method: &str, methods: &Methods<'_>) -> Option<AbsoluteResult> {
    let within = figure.absolute?;
    let paper = *figure.values.get(method)?;
    if figure.fitted.iter().any(|fitted| fitted == method) {
        return None;
    }
    let values = values(methods, method, &figure.measure);
    let (low, high) = (1.0 - within / 100.0, 1.0 + within / 100.0);
    let evidence = match one_run(methods, &[method]) {
        true => Evidence::of_one_run(),
        false => Evidence::of_band(&values, paper * low, paper * high),
    };
    Some(AbsoluteResult {
        measure: figure.measure.clone(),
        method: String::from(method),
        paper,
        ours: summarise(&values),
        within,
        question: Question::new(evidence),
    })
}

fn of_claim(claim: &Claim, methods: &Methods<'_>) -> ClaimResult {
    let summary = |method: &str| summarise(&values(methods, method, &claim.measure));
    if let Some(than) = claim.than {
        return of_bound(claim, &claim.more, "above", than, methods, |value| {
            value > than
        });
    }
    if let Some(most) = claim.at_most {
        return of_bound(claim, &claim.less, "at most", most, methods, |value| {
            value <= most
        });
    }
    let pairs = pairs(methods, &claim.more, &claim.less, &claim.measure);
    let both = (summary(&claim.more), summary(&claim.less));
    let found = match both {
        (Some(more), Some(less)) => {
            let found = format!(
                "{}: {} {}, {} {}",
                claim.measure,
                claim.more,
                with_interval(&more),
                claim.less,
                with_interval(&less)
            );
            match (claim.times, paired_ratio(&pairs)) {
                (Some(times), Some(ratio)) => {
                    format!(
                        "{found}; ratio {}, wanted above {times}",
                        with_interval(&ratio)
                    )
                }
                _ => found,
            }
        }
        _ => format!("{} is not known of both", claim.measure),
    };
    let evidence = match one_run(methods, &[&claim.more, &claim.less]) {
        true => Evidence::of_one_run(),
        // Equal values are no more: they count against the claim.
        false => {
            let times = claim.times.unwrap_or(1.0);
            Evidence::of_relation(pairs.iter().map(|(more, less)| *more > times * less))
        }
    };
    ClaimResult {
        text: claim.text.clone(),
        found,
        question: Question::new(evidence),
    }
}

/// A claim that a method's measure is `above` a number, or `at most` as much.
fn of_bound(
    claim: &Claim,
    method: &str,
    words: &str,
    bound: f64,
    methods: &Methods<'_>,
    keeps: impl Fn(f64) -> bool,
) -> ClaimResult {
    let values = values(methods, method, &claim.measure);
    let found = match summarise(&values) {
        Some(summary) => format!(
            "{}: {method} {}, wanted {words} {bound}",
            claim.measure,
            with_interval(&summary)
        ),
        None => format!("{} is not known", claim.measure),
    };
    let evidence = match one_run(methods, &[method]) {
        true => Evidence::of_one_run(),
        false => Evidence::of_relation(values.iter().map(|value| keeps(*value))),
    };
    ClaimResult {
        text: claim.text.clone(),
        found,
        question: Question::new(evidence),
    }
}

fn with_interval(summary: &Summary) -> String {
    let number = runner::table::number;
    format!(
        "{} [{} .. {}]",
        number(summary.median),
        number(summary.low),
        number(summary.high)
    )
}

/// An order of effects, with the table that its first case is in.
fn of_order(order: &Order, cases: &[CaseResult]) -> (u32, ClaimResult) {
    let effect = |name: &String| {
        let case = cases.iter().find(|case| &case.name == name)?;
        let mut effects = case.effects.iter();
        let effect = effects
            .find(|effect| effect.measure == order.measure && effect.method == order.method)?;
        Some((case.table, effect))
    };
    let effects: Option<Vec<_>> = order.cases.iter().map(effect).collect();
    let Some(effects) = effects else {
        let result = ClaimResult {
            text: order.text.clone(),
            found: String::from("not all of its cases were run"),
            question: Question::new(Evidence::none()),
        };
        return (0, result);
    };
    let each = order.cases.iter().zip(&effects);
    let each: Vec<String> = each
        .map(|(case, (_, effect))| {
            let ratio = effect.ratio.as_ref();
            let ratio = ratio.map_or_else(|| String::from("-"), with_interval);
            format!("case {case} {ratio}")
        })
        .collect();
    // Each neighbour of the order, start phase by start phase.
    let links = effects.iter().zip(effects.iter().skip(1));
    let links: Vec<Evidence> = links
        .map(|((_, larger), (_, smaller))| {
            let phases = larger.ratios.iter().zip(&smaller.ratios);
            Evidence::of_relation(phases.map(|(larger, smaller)| larger > smaller))
        })
        .collect();
    let result = ClaimResult {
        text: order.text.clone(),
        found: format!("{}: {}", order.measure, each.join(", ")),
        question: Question::new(Evidence::of_all(&links)),
    };
    (effects.first().map_or(0, |(table, _)| *table), result)
}

fn of_negative(negative: &Negative, methods: &Methods<'_>) -> NegativeResult {
    let base = negative.methods.first().map_or("", String::as_str);
    let tolerance = negative.tolerance / 100.0;
    let mut worst: Option<(String, Summary)> = None;
    let mut parts = Vec::new();
    for (method, _) in methods.iter().filter(|(method, _)| method != base) {
        let pairs = pairs(methods, method, base, &negative.measure);
        parts.push(match one_run(methods, &[method, base]) {
            true => Evidence::of_one_run(),
            false => Evidence::of_ratio(&ratios(&pairs), tolerance),
        });
        let Some(ratio) = paired_ratio(&pairs) else {
            continue;
        };
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
        tolerance: negative.tolerance,
        question: Question::new(Evidence::of_no_effects(&parts)),
        failures: failures(&negative.title, methods),
    }
}

impl Question {
    /// Returns whether a claim holds, in words.
    pub fn as_claim(&self) -> String {
        match self.answer {
            Answer::Above => String::from("holds"),
            Answer::Below | Answer::Within => String::from("DOES NOT HOLD"),
            Answer::Open => String::from("undecided"),
            Answer::Refused { phases, needed } => {
                crate::laboratory::verdict::refusal(phases, needed)
            }
        }
    }

    /// Returns whether there is no effect where there can be none, in words.
    pub fn as_negative(&self) -> String {
        match self.answer {
            Answer::Within => String::from("none"),
            Answer::Above | Answer::Below => String::from("AN EFFECT"),
            _ => self.as_claim(),
        }
    }

    /// Returns whether a value is the paper's, in words.
    pub(crate) fn as_absolute(&self) -> String {
        match self.answer {
            Answer::Within => String::from("as in the paper"),
            Answer::Above => String::from("MORE THAN IN THE PAPER"),
            Answer::Below => String::from("LESS THAN IN THE PAPER"),
            _ => self.as_claim(),
        }
    }
}
