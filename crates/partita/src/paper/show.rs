//! A judgement as people read it.

use super::judge::{CaseResult, ClaimResult, EffectResult, Judgement, NegativeResult};
use crate::drawing::Page;
use crate::laboratory::statistics::Summary;
use crate::measures::number;
use crate::report::Table;
use std::fmt::Write;

/// The whole judgement as text.
pub fn show(judgement: &Judgement) -> String {
    let mut text = format!("{}\n{}\n", judgement.title, judgement.source);
    // Writing to a String does not fail.
    for case in &judgement.cases {
        let place = place(case);
        let _ = write!(text, "\n{place}: {}\n{}", case.title, table(case));
        for claim in &case.claims {
            let _ = writeln!(text, "{}", of_claim(claim));
        }
        let notes = case
            .effects
            .iter()
            .filter_map(|effect| effect.note.as_ref());
        let mut notes: Vec<&String> = notes.collect();
        notes.dedup();
        for note in notes {
            let _ = writeln!(text, "note: {note}");
        }
    }
    if !judgement.orders.is_empty() {
        text += "\n";
    }
    for order in &judgement.orders {
        let _ = writeln!(text, "{}", of_claim(order));
    }
    text += "\nWhere there can be no effect\n";
    for negative in &judgement.negatives {
        let _ = writeln!(text, "{}", of_negative(negative));
    }
    let _ = write!(text, "\n{}", summary(judgement));
    text
}

/// The same as a page, with these words below it.
pub fn page(judgement: &Judgement, below: &str) -> String {
    let mut page = Page::new(&judgement.title);
    page.paragraph(&judgement.source);
    for case in &judgement.cases {
        page.heading(&format!("{}: {}", place(case), case.title));
        page.table(&table(case));
        for claim in &case.claims {
            page.paragraph(&of_claim(claim));
        }
    }
    if !judgement.orders.is_empty() {
        page.heading("Orders of effects");
    }
    for order in &judgement.orders {
        page.paragraph(&of_claim(order));
    }
    page.heading("Where there can be no effect");
    for negative in &judgement.negatives {
        page.paragraph(&of_negative(negative));
    }
    page.heading("All together");
    for line in summary(judgement).lines() {
        page.paragraph(line);
    }
    page.paragraph(below);
    page.finish()
}

/// The same with the tables as code, for a document.
pub fn document(judgement: &Judgement, command: &str) -> String {
    format!("`{command}`\n\n```\n{}```\n", show(judgement))
}

fn place(case: &CaseResult) -> String {
    match case.table {
        0 => format!("Text, {}", case.name),
        table => format!("Table {table}, case {}", case.name),
    }
}

fn interval(summary: &Summary) -> String {
    format!("{} .. {}", number(summary.low), number(summary.high))
}

fn table(case: &CaseResult) -> Table {
    let mut table = Table::new([
        "measure",
        "method",
        "paper",
        "ours",
        "interval",
        "paper: ratio",
        "ours: ratio",
        "interval",
        "verdict",
    ]);
    let dash = || String::from("-");
    let mut last = "";
    for effect in &case.effects {
        let name = if effect.measure == last {
            String::new()
        } else {
            effect.measure.clone()
        };
        last = &effect.measure;
        let ratio = |ratio: f64| format!("{ratio:.4}");
        table.row([
            name,
            effect.method.clone(),
            effect.paper.map_or_else(dash, number),
            effect.ours.map_or_else(dash, |ours| number(ours.median)),
            effect.ours.as_ref().map_or_else(String::new, interval),
            effect.paper_ratio.map_or_else(String::new, ratio),
            effect
                .ratio
                .map_or_else(String::new, |ours| ratio(ours.median)),
            effect.ratio.as_ref().map_or_else(String::new, interval),
            verdict(effect),
        ]);
    }
    table
}

fn verdict(effect: &EffectResult) -> String {
    let direction = effect.direction.map_or("", |direction| direction.words());
    match effect.size {
        Some(size) => format!("{direction}, {}", size.words()),
        None => String::from(direction),
    }
}

fn of_claim(claim: &ClaimResult) -> String {
    let verdict = match claim.holds {
        Some(true) => "holds",
        Some(false) => "DOES NOT HOLD",
        None => "undecided",
    };
    format!("claim: {}\n  {verdict}: {}", claim.text, claim.found)
}

fn of_negative(negative: &NegativeResult) -> String {
    let verdict = match negative.holds {
        Some(true) => "none",
        Some(false) => "AN EFFECT",
        None => "one start phase: no verdict",
    };
    format!("{verdict}: {}\n  {}", negative.title, negative.found)
}

/// How many of the effects came out, and which did not.
fn summary(judgement: &Judgement) -> String {
    use super::Direction::{New, None, NotSeen, Opposite, Same};
    let all = || {
        let cases = judgement.cases.iter();
        cases.flat_map(|case| case.effects.iter().map(move |effect| (case, effect)))
    };
    let count = |wanted: &[super::Direction]| {
        let of = |direction| wanted.contains(&direction);
        all()
            .filter(|(_, effect)| effect.direction.is_some_and(of))
            .count()
    };
    let mut text = format!(
        "Effects: {} in the paper's direction, {} opposite, {} not seen, {} none in either, {} ours alone\n",
        count(&[Same]),
        count(&[Opposite]),
        count(&[NotSeen]),
        count(&[None]),
        count(&[New])
    );
    let missing =
        |direction: &Option<super::Direction>| matches!(direction, Some(Opposite | NotSeen | New));
    for (case, effect) in all().filter(|(_, effect)| missing(&effect.direction)) {
        let direction = effect.direction.map_or("", |direction| direction.words());
        let (paper, ours) = (effect.paper_ratio.unwrap_or(f64::NAN), effect.ratio);
        let ours = ours.map_or(f64::NAN, |ours| ours.median);
        let _ = writeln!(
            text,
            "  {}: {} of {}: {direction} (paper {paper:.4}, ours {ours:.4})",
            place(case),
            effect.measure,
            effect.method
        );
    }
    text
}
