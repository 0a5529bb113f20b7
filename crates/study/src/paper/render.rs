//! A judgement as people read it.

use super::events;
use super::result::{
    AbsoluteResult, CaseResult, ClaimResult, EffectResult, GainPoint, GainResult, Judgement,
    ModelPoint, NegativeResult,
};
use crate::drawing::{self, Line, Page, Points};
use crate::laboratory::Entry;
use crate::laboratory::statistics::Summary;
use crate::laboratory::verdict::{Verdict, correction};
use runner::measures::Measure;
use runner::table::Table;
use runner::table::number;
use std::fmt::Write;

/// Heading of the table of events.
const EVENTS: &str = "What an event costs";

/// The whole judgement as text.
pub fn show(judgement: &Judgement) -> String {
    let registration = judgement.registration.words();
    let (title, source) = (&judgement.title, &judgement.source);
    let mut text = format!("{title}\n{source}\n{registration}\n");
    // Writing to a String does not fail.
    for case in &judgement.cases {
        let place = place(case);
        let _ = write!(text, "\n{place}: {}\n{}", case.title, table(case));
        for absolute in &case.absolutes {
            let _ = writeln!(text, "{}", of_absolute(absolute));
        }
        for claim in &case.claims {
            let _ = writeln!(text, "{}", of_claim(claim));
        }
        for point in &case.model {
            let _ = writeln!(text, "{}", of_model(point));
        }
        for relation in &case.relations {
            let _ = writeln!(text, "{}", relation.words());
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
    if !judgement.events.is_empty() {
        let _ = write!(text, "\n{EVENTS}\n{}", events::table(&judgement.events));
    }
    if !judgement.orders.is_empty() {
        text += "\n";
    }
    for order in &judgement.orders {
        let _ = writeln!(text, "{}", of_claim(order));
    }
    for gain in &judgement.gains {
        let _ = write!(text, "\n{}\n{}", gain.title, of_gain(gain));
    }
    for curve in &judgement.curves {
        let _ = write!(text, "\n{}\n{}", curve.title, curve.table());
    }
    for bars in &judgement.bars {
        let _ = write!(text, "\n{}\n{}", bars.title, bars.table());
    }
    text += "\nWhere there can be no effect\n";
    for negative in &judgement.negatives {
        let _ = writeln!(text, "{}", of_negative(negative));
    }
    let _ = write!(text, "\n{}", summary(judgement));
    for failure in judgement.failures() {
        // The first line says which run and what; the rest is what it wrote.
        let first = failure.lines().next().unwrap_or_default();
        let _ = writeln!(text, "FAILED: {first}");
    }
    text
}

/// A picture of a run of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The case's name.
    pub case: String,
    /// Its title.
    pub words: String,
    /// The picture.
    pub svg: String,
    /// Its legend.
    pub colours: Vec<(String, String)>,
}

/// Page of a judgement with pictures of single runs, with these words below it and what made it of these runs.
pub fn page(judgement: &Judgement, pictures: &[Picture], below: &str, entries: &[Entry]) -> String {
    let mut page = Page::new(&judgement.title);
    page.paragraph(&judgement.source);
    page.paragraph(&judgement.registration.words());
    for case in &judgement.cases {
        page.heading(&format!("{}: {}", place(case), case.title));
        page.table(&table(case));
        for absolute in &case.absolutes {
            page.paragraph(&of_absolute(absolute));
        }
        for claim in &case.claims {
            page.paragraph(&of_claim(claim));
        }
        for point in &case.model {
            page.paragraph(&of_model(point));
        }
        if let Some(first) = case.relations.first() {
            let series: Vec<Points<'_>> = case
                .relations
                .iter()
                .map(|relation| Points {
                    name: &relation.method,
                    points: &relation.points,
                    trend: relation.trend(),
                })
                .collect();
            page.figure(
                &drawing::scatter(&series, &with_unit(&first.across), &with_unit(&first.up)),
                "Phase by phase, each method with the line of its median slope",
            );
        }
        for relation in &case.relations {
            page.paragraph(&relation.words());
        }
        if !case.spreads.is_empty() {
            super::exit_distribution::draw(&mut page, &case.spreads);
        }
        for picture in pictures.iter().filter(|picture| picture.case == case.name) {
            page.paragraph(&picture.words);
            page.colours(&picture.colours);
            page.figure(&picture.svg, &picture.words);
        }
    }
    if !judgement.events.is_empty() {
        page.heading(EVENTS);
        page.table(&events::table(&judgement.events));
    }
    if !judgement.orders.is_empty() {
        page.heading("Orders of effects");
    }
    for order in &judgement.orders {
        page.paragraph(&of_claim(order));
    }
    for gain in &judgement.gains {
        page.heading(&gain.title);
        let (lines, names) = drawn(gain);
        page.figure(
            &drawing::lines(&lines, &gain.across, &gain.up, &[]),
            &gain.title,
        );
        page.legend(&names);
        page.table(&of_gain(gain));
    }
    for curve in &judgement.curves {
        page.heading(&curve.title);
        let lines = curve.drawn();
        page.figure(
            &drawing::lines(&lines, &curve.across, &curve.up, &[]),
            &curve.title,
        );
        let names = lines.into_iter().map(|line| line.name);
        page.legend(&names.collect::<Vec<_>>());
        page.table(&curve.table());
    }
    for bars in &judgement.bars {
        page.heading(&bars.title);
        let (parts, rows) = bars.drawn();
        page.figure(&drawing::shares(&parts, &rows), &bars.title);
        page.table(&bars.table());
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
    crate::provenance::made_by(&mut page, entries);
    page.finish()
}

/// Text of a judgement with the tables as code, for a document.
pub fn document(judgement: &Judgement, command: &str) -> String {
    format!("`{command}`\n\n```\n{}```\n", show(judgement))
}

fn place(case: &CaseResult) -> String {
    match case.table {
        0 => format!("Text, {}", case.name),
        table => format!("Table {table}, case {}", case.name),
    }
}

/// A measure with its unit.
fn with_unit(name: &str) -> String {
    let unit = Measure::unit_of(name);
    match unit {
        "" => String::from(name),
        unit => format!("{name} ({unit})"),
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
    let verdict = effect.verdict.map_or_else(String::new, Verdict::words);
    match effect.size {
        Some(size) => format!("{verdict}, {}", size.words()),
        None => verdict,
    }
}

fn of_absolute(absolute: &AbsoluteResult) -> String {
    let AbsoluteResult {
        measure,
        method,
        paper,
        within,
        question,
        ..
    } = absolute;
    let ours = absolute.ours.as_ref().map_or_else(
        || String::from("not measured"),
        |ours| format!("{} [{}]", number(ours.median), interval(ours)),
    );
    let paper = number(*paper);
    format!(
        "value: {measure} of {method}, paper {paper}, within {within} %\n  {}: {ours}",
        question.as_absolute()
    )
}

fn of_claim(claim: &ClaimResult) -> String {
    let verdict = claim.question.as_claim();
    format!("claim: {}\n  {verdict}: {}", claim.text, claim.found)
}

fn of_model(point: &ModelPoint) -> String {
    format!(
        "model: {} beside {}: r {} [{}], so D {:.1} % with T0 {}, AT {} cycles and NITR {} %\n  measured D: {:.1} % [{:.1} .. {:.1}]",
        point.method,
        point.base,
        number(point.r.median),
        interval(&point.r),
        point.modelled,
        number(point.instruction),
        number(point.walk),
        number(100.0 * point.nitr),
        point.measured.median,
        point.measured.low,
        point.measured.high
    )
}

fn of_negative(negative: &NegativeResult) -> String {
    let NegativeResult {
        title,
        found,
        tolerance,
        question,
        ..
    } = negative;
    let verdict = question.as_negative();
    format!("{verdict} beyond {tolerance} %: {title}\n  {found}")
}

/// The verdicts by which a summary counts effects, in its order.
const HEADS: [&str; 8] = [
    "as in the paper",
    "none, as in the paper",
    "opposite",
    "none where the paper has one",
    "an effect where the paper has none",
    "undecided",
    "refused",
    "fitted",
];

/// A gain as a table.
fn of_gain(gain: &GainResult) -> Table {
    let GainResult { across, up, .. } = gain;
    let mut table = Table::new([
        "case",
        &format!("paper: {across}"),
        &format!("paper: {up}"),
        &format!("ours: {across}"),
        &format!("ours: {up}"),
        "interval",
    ]);
    let text = |value: Option<f64>| value.map_or_else(|| String::from("-"), number);
    for point in &gain.points {
        table.row([
            point.case.clone(),
            text(point.paper.map(|paper| paper.0)),
            text(point.paper.map(|paper| paper.1)),
            text(point.across),
            text(point.gain.map(|gain| gain.0)),
            (point.gain).map_or_else(String::new, |(_, low, high)| {
                format!("{} .. {}", number(low), number(high))
            }),
        ]);
    }
    table
}

/// The paper's points and ours, each from left to right.
fn drawn(gain: &GainResult) -> (Vec<Line>, Vec<String>) {
    let paper = |point: &GainPoint| point.paper.map(|(x, y)| (x, y, y, y));
    let ours = |point: &GainPoint| {
        let (gain, low, high) = point.gain?;
        Some((point.across?, gain, low, high))
    };
    let line = |name: &str, mut points: Vec<(f64, f64, f64, f64)>| {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line {
            name: String::from(name),
            points,
        }
    };
    let lines = vec![
        line("paper", gain.points.iter().filter_map(paper).collect()),
        line("ours", gain.points.iter().filter_map(ours).collect()),
    ];
    let names = lines.iter().map(|line| line.name.clone()).collect();
    (lines, names)
}

/// How many of the effects came out, which did not, and what was decided together.
fn summary(judgement: &Judgement) -> String {
    let cases = judgement.cases.iter();
    let all = cases.flat_map(|case| case.effects.iter().map(move |effect| (case, effect)));
    let judged: Vec<_> = all
        .filter_map(|(case, effect)| Some((case, effect, effect.verdict?)))
        .collect();
    let counts = HEADS.iter().filter_map(|head| {
        let of = |(_, _, verdict): &&(_, _, Verdict)| verdict.head() == *head;
        let count = judged.iter().filter(of).count();
        (count > 0).then(|| format!("{count} {head}"))
    });
    let counts: Vec<String> = counts.collect();
    let mut text = format!("Effects: {}\n", counts.join(", "));
    let is_other = |verdict: &Verdict| {
        matches!(
            verdict,
            Verdict::Opposite
                | Verdict::NoneWhereThePaperHasOne
                | Verdict::EffectWhereThePaperHasNone
                | Verdict::Undecided
        )
    };
    for (case, effect, verdict) in judged.iter().filter(|(_, _, verdict)| is_other(verdict)) {
        let (paper, ours) = (effect.paper_ratio.unwrap_or(f64::NAN), effect.ratio);
        let ours = ours.map_or_else(
            || String::from("unknown"),
            |ours| format!("{:.4} [{:.4} .. {:.4}]", ours.median, ours.low, ours.high),
        );
        let _ = writeln!(
            text,
            "  {}: {} of {}: {} (paper {paper:.4}, ours {ours})",
            place(case),
            effect.measure,
            effect.method,
            verdict.words()
        );
    }
    for family in &judgement.families {
        let _ = writeln!(text, "{}: {}", family.name, correction(family.comparisons));
    }
    let (smallest, reason) = &judgement.smallest_effect;
    let _ = writeln!(
        text,
        "The smallest effect that counts: {} % ({reason})",
        number(smallest * 100.0)
    );
    text
}
