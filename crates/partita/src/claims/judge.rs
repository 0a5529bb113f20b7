//! What came out of a claim's runs.

use super::{Bound, Claim, EVENT, Test};
use crate::drawing::Page;
use crate::laboratory::statistics::{Summary, summarise};
use crate::laboratory::{Entry, Figures};
use crate::measures::number;
use crate::report::Table;
use serde::Serialize;
use std::fmt::Write;

/// A claim and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// What is claimed.
    pub text: String,
    /// Each of its tests, for each method.
    pub findings: Vec<Finding>,
    /// Runs that failed, for people.
    pub failures: Vec<String>,
    /// What is known about it.
    pub note: Option<String>,
}

/// What one test found for one method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What was measured.
    pub figure: String,
    /// Of which method, perhaps beside which.
    pub method: String,
    /// What it is, over the seeds; `None` where no run knows it.
    pub value: Option<Summary>,
    /// What it must be.
    pub wanted: String,
    /// Whether it is.
    pub verdict: Verdict,
}

/// Whether a bound is kept.
///
/// Of two verdicts the greater is that of both together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval keeps to it.
    Holds,
    /// The interval holds the bound, or there is none: one start phase may be an accident.
    Undecided,
    /// The whole interval is beyond it, or nothing was measured.
    DoesNotHold,
}

impl Verdict {
    /// In words.
    const fn words(self) -> &'static str {
        match self {
            Self::Holds => "HOLDS",
            Self::DoesNotHold => "DOES NOT HOLD",
            Self::Undecided => "UNDECIDED",
        }
    }
}

impl Judged {
    /// What its findings come to: one that does not hold decides, and one that is undecided leaves all open.
    pub fn verdict(&self) -> Verdict {
        if !self.failures.is_empty() {
            return Verdict::DoesNotHold;
        }
        let each = self.findings.iter().map(|finding| finding.verdict);
        each.max().unwrap_or(Verdict::Holds)
    }
}

/// Judges a claim by its runs, which are those of [`super::plan`] in its order.
pub fn judge(claim: &Claim, entries: &[Entry]) -> Judged {
    let each = (entries.len() / claim.methods.len().max(1)).max(1);
    let runs = |method: &str| -> &[Entry] {
        let place = claim.methods.iter().position(|other| other == method);
        let place = place.and_then(|place| entries.chunks(each).nth(place));
        place.unwrap_or(&[])
    };
    let mut findings = Vec::new();
    for test in &claim.tests {
        for method in &test.of {
            let base = test.to.as_deref().map(runs);
            findings.push(find(test, method, runs(method), base));
        }
    }
    let failures = entries.iter().filter_map(|entry| match &entry.outcome {
        crate::laboratory::Outcome::Failed(why) => {
            let changes = entry.point.changes.join(" ");
            Some(format!("{changes}, seed {}: {why}", entry.point.seed))
        }
        crate::laboratory::Outcome::Finished { .. } => None,
    });
    Judged {
        name: claim.name.clone(),
        text: claim.text.clone(),
        findings,
        failures: failures.collect(),
        note: claim.note.clone(),
    }
}

fn find(test: &Test, method: &str, runs: &[Entry], base: Option<&[Entry]>) -> Finding {
    let value = |entry: &Entry| {
        entry
            .outcome
            .figures()
            .and_then(|figures| figure(test, figures))
    };
    let values: Option<Vec<f64>> = match base {
        None => runs.iter().map(value).collect(),
        Some(base) => runs
            .iter()
            .zip(base)
            .map(|(run, base)| {
                let (run, base) = (value(run)?, value(base)?);
                let compared = if test.difference {
                    run - base
                } else {
                    run / base
                };
                compared.is_finite().then_some(compared)
            })
            .collect(),
    };
    let summary = values.and_then(|values| summarise(&values));
    let each = |summary: &Summary| test.bounds().map(|bound| keeps(bound, summary)).max();
    let verdict = summary
        .as_ref()
        .and_then(each)
        .unwrap_or(Verdict::DoesNotHold);
    let wanted: Vec<String> = test
        .bounds()
        .map(|bound| match bound {
            Bound::AtLeast(least) => format!("at least {least}"),
            Bound::AtMost(most) => format!("at most {most}"),
        })
        .collect();
    let method = match (&test.to, test.difference) {
        (None, _) => String::from(method),
        (Some(to), true) => format!("{method} - {to}"),
        (Some(to), false) => format!("{method} / {to}"),
    };
    Finding {
        figure: test.figure(),
        method,
        value: summary,
        wanted: wanted.join(", "),
        verdict,
    }
}

/// Whether an interval keeps to a bound.
fn keeps(bound: Bound, summary: &Summary) -> Verdict {
    let kept = |value: f64| match bound {
        Bound::AtLeast(least) => value >= least,
        Bound::AtMost(most) => value <= most,
    };
    match (kept(summary.low), kept(summary.high)) {
        _ if summary.count < 2 => Verdict::Undecided,
        (true, true) => Verdict::Holds,
        (false, false) => Verdict::DoesNotHold,
        _ => Verdict::Undecided,
    }
}

/// The figure that a test is about, of one run.
fn figure(test: &Test, figures: &Figures) -> Option<f64> {
    let one = |name: &String| {
        // An event that nobody counted did not happen.
        let missing = name.starts_with(EVENT).then_some(0.0);
        figures.get(name).copied().or(missing)
    };
    let sum = |names: &[String]| names.iter().map(one).sum::<Option<f64>>();
    let above = sum(&test.measure)?;
    if test.per.is_empty() {
        return Some(above);
    }
    let below = sum(&test.per)?;
    (below != 0.0).then_some(above / below)
}

/// A claim as people read it.
pub fn show(judged: &Judged) -> String {
    let verdict = judged.verdict().words();
    let mut text = format!("{}: {verdict}\n  {}\n", judged.name, judged.text);
    // Writing to a String does not fail.
    for finding in &judged.findings {
        let value = finding.value.as_ref().map_or_else(
            || String::from("not measured"),
            |value| {
                let one = value.count == 1;
                let interval = format!(" [{} .. {}]", number(value.low), number(value.high));
                let interval = if one { String::new() } else { interval };
                format!("{}{interval}", number(value.median))
            },
        );
        let one = finding.value.is_some_and(|value| value.count == 1);
        let mark = match finding.verdict {
            Verdict::Holds => "ok ",
            Verdict::DoesNotHold => "NOT",
            Verdict::Undecided if one => "?   one start phase:",
            Verdict::Undecided => "?  ",
        };
        let _ = writeln!(
            text,
            "  {mark} {}: {} {value}, wanted {}",
            finding.figure, finding.method, finding.wanted
        );
    }
    for failure in &judged.failures {
        let _ = writeln!(text, "  failed: {failure}");
    }
    if let Some(note) = judged
        .note
        .as_ref()
        .filter(|_| judged.verdict() != Verdict::Holds)
    {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}

/// All claims as a page.
pub fn page(title: &str, judged: &[Judged]) -> String {
    let mut page = Page::new(title);
    for claim in judged {
        page.heading(&format!("{}: {}", claim.name, claim.verdict().words()));
        page.paragraph(&claim.text);
        let mut table = Table::new(["figure", "of", "median", "interval", "wanted", "verdict"]);
        for finding in &claim.findings {
            let value = |show: &dyn Fn(&Summary) -> String| {
                finding
                    .value
                    .as_ref()
                    .map_or_else(|| String::from("-"), show)
            };
            table.row([
                finding.figure.clone(),
                finding.method.clone(),
                value(&|value| number(value.median)),
                value(&|value| format!("{} .. {}", number(value.low), number(value.high))),
                finding.wanted.clone(),
                String::from(finding.verdict.words()),
            ]);
        }
        page.table(&table);
        for failure in &claim.failures {
            page.paragraph(&format!("failed: {failure}"));
        }
        if let Some(note) = claim
            .note
            .as_ref()
            .filter(|_| claim.verdict() != Verdict::Holds)
        {
            page.paragraph(&format!("note: {note}"));
        }
    }
    page.finish()
}
