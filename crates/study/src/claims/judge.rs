//! Result of a claim's runs.

use super::{Bound, Claim, EVENT, Test};
use crate::drawing::Page;
use crate::laboratory::statistics::{Summary, summarise};
use crate::laboratory::verdict::{Answer, Evidence, decide, refusal};
use crate::laboratory::{Entry, is_one_run};
use runner::measures::Figures;
use runner::table::Table;
use runner::table::number;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A claim and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// The claim.
    pub text: String,
    /// Each of its tests, for each method.
    pub findings: Vec<Finding>,
    /// Runs that failed, for people.
    pub failures: Vec<String>,
    /// Known facts about it.
    pub note: Option<String>,
    /// Verdict on the claim, together with all others that are asked for.
    pub verdict: Verdict,
}

/// Finding of one test for one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The measured quantity.
    pub figure: String,
    /// Of which method, perhaps beside which.
    pub method: String,
    /// Its value over the seeds; `None` where no run knows it.
    pub value: Option<Summary>,
    /// Its bounds.
    pub wanted: String,
    /// Evidence of the start phases; `None` where nothing was measured.
    pub evidence: Option<Evidence>,
    /// Its verdict by itself.
    pub verdict: Verdict,
}

/// Verdict on a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The start phases show that it is.
    Holds,
    /// They decide nothing.
    Undecided,
    /// So few of them cannot decide it.
    Refused {
        /// How many were run.
        phases: usize,
        /// How many it needs at least.
        needed: usize,
    },
    /// They show that it is not, or nothing was measured.
    DoesNotHold,
}

impl Verdict {
    fn of(answer: Answer) -> Self {
        match answer {
            Answer::Above => Self::Holds,
            Answer::Below => Self::DoesNotHold,
            Answer::Within | Answer::Open => Self::Undecided,
            Answer::Refused { phases, needed } => Self::Refused { phases, needed },
        }
    }

    /// In words.
    fn words(self) -> String {
        match self {
            Self::Holds => String::from("HOLDS"),
            Self::DoesNotHold => String::from("DOES NOT HOLD"),
            Self::Undecided => String::from("UNDECIDED"),
            Self::Refused { phases, needed } => refusal(phases, needed),
        }
    }
}

impl Judged {
    /// Evidence of all its findings: all of them must hold, so that its evidence is theirs together.
    fn evidence(&self) -> Option<Evidence> {
        let each = self.findings.iter().map(|finding| finding.evidence);
        let each = each.collect::<Option<Vec<Evidence>>>()?;
        self.failures.is_empty().then(|| Evidence::of_all(&each))
    }
}

/// Decides claims together. A claim of which a run failed, or a figure was not measured, does not hold whatever the others say,
/// and takes no part. Returns how many were decided.
pub fn settle(claims: &mut [Judged]) -> usize {
    let mut asked = Vec::new();
    for claim in claims {
        match claim.evidence() {
            Some(evidence) => asked.push((evidence, claim)),
            None => claim.verdict = Verdict::DoesNotHold,
        }
    }
    let evidence: Vec<Evidence> = asked.iter().map(|(evidence, _)| *evidence).collect();
    for ((_, claim), answer) in asked.iter_mut().zip(decide(&evidence)) {
        claim.verdict = Verdict::of(answer);
    }
    evidence.len()
}

/// Findings of a claim from its runs, which are those of [`super::plan`] in its order. [`settle`] says what follows.
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
        verdict: Verdict::Undecided,
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
    let is_one_run = is_one_run(runs) || base.is_some_and(is_one_run);
    let evidence = values.as_ref().map(|values| match is_one_run {
        true => Evidence::of_one_run(),
        false => bounds(test, values),
    });
    let summary = values.as_ref().and_then(|values| summarise(values));
    let verdict = evidence
        .and_then(|evidence| decide(&[evidence]).first().copied())
        .map_or(Verdict::DoesNotHold, Verdict::of);
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
        evidence,
        verdict,
    }
}

/// Evidence of values for a test's bounds: each bound is a relation of its own, and all must hold.
fn bounds(test: &Test, values: &[f64]) -> Evidence {
    let of = |bound| Evidence::of_relation(values.iter().map(|value| is_kept(bound, *value)));
    Evidence::of_all(&test.bounds().map(of).collect::<Vec<_>>())
}

fn is_kept(bound: Bound, value: f64) -> bool {
    match bound {
        Bound::AtLeast(least) => value >= least,
        Bound::AtMost(most) => value <= most,
    }
}

/// The figure that a test is about, of one run.
fn figure(test: &Test, figures: &Figures) -> Option<f64> {
    let one = |name: &String| {
        // An event without a count did not happen.
        let missing = name.starts_with(EVENT).then_some(0.0);
        figures.named(name).or(missing)
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
    let verdict = judged.verdict.words();
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
        let mark = match finding.verdict {
            Verdict::Holds => "ok ",
            Verdict::DoesNotHold => "NOT",
            Verdict::Undecided => "?  ",
            Verdict::Refused { .. } => "few",
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
        .filter(|_| judged.verdict != Verdict::Holds)
    {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}

/// All claims as a page, and what made it of these runs.
pub fn page(title: &str, judged: &[Judged], below: &str, entries: &[Entry]) -> String {
    let mut page = Page::new(title);
    for claim in judged {
        page.heading(&format!("{}: {}", claim.name, claim.verdict.words()));
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
                finding.verdict.words(),
            ]);
        }
        page.table(&table);
        for failure in &claim.failures {
            page.paragraph(&format!("failed: {failure}"));
        }
        if let Some(note) = claim
            .note
            .as_ref()
            .filter(|_| claim.verdict != Verdict::Holds)
        {
            page.paragraph(&format!("note: {note}"));
        }
    }
    page.paragraph(below);
    crate::provenance::made_by(&mut page, entries);
    page.finish()
}
