//! Results of a suite, a row for each group of programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::json;

use super::known::Known;
use super::program::Program;
use super::run::{Outcome, Verdict};

/// The counts of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Row {
    passed: usize,
    known: usize,
    failed: usize,
    instructions: u64,
}

/// The table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: BTreeMap<String, Row>,
    /// Programs that failed though they should not, or passed though they should not.
    failures: Vec<(String, String)>,
    known: Vec<(String, String)>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => write!(formatter, "passed"),
            Self::Test(number) => write!(formatter, "test {number} failed"),
            Self::Signature {
                line,
                expected,
                found,
            } => write!(
                formatter,
                "line {line} of the signature is {found}, the reference has {expected}"
            ),
            Self::Report(line) => write!(formatter, "says `{line}`"),
            Self::Stopped => write!(formatter, "stopped"),
            Self::Endless => write!(formatter, "did not end"),
            Self::Unusable(reason) => write!(formatter, "cannot be run: {reason}"),
        }
    }
}

impl Table {
    /// The table of programs and their outcomes.
    #[must_use]
    pub fn new(programs: &[Program], outcomes: &[Outcome], known: &Known) -> Self {
        let mut table = Self::default();
        for (program, outcome) in programs.iter().zip(outcomes) {
            let row = table.rows.entry(program.group().to_owned()).or_default();
            row.instructions += outcome.instructions;
            let name = program.name.clone();
            match (&outcome.verdict, known.expected_failure(&name)) {
                (Verdict::Passed, None) => row.passed += 1,
                (Verdict::Passed, Some(reason)) => {
                    row.failed += 1;
                    let text = format!("passed, though it is listed to fail: {reason}");
                    table.failures.push((name, text));
                }
                (_, Some(reason)) => {
                    row.known += 1;
                    table.known.push((name, reason.to_owned()));
                }
                (verdict, None) => {
                    row.failed += 1;
                    table.failures.push((name, verdict.to_string()));
                }
            }
        }
        table
    }

    /// Everything for programs: a JSON object with each group's counts and each program's verdict.
    #[must_use]
    pub fn json(&self, programs: &[Program], outcomes: &[Outcome], known: &Known) -> String {
        let one = |(program, outcome): (&Program, &Outcome)| {
            json!({
                "name": program.name,
                "group": program.group(),
                "outcome": outcome.verdict,
                "text": outcome.verdict.to_string(),
                "known": known.expected_failure(&program.name),
                "instructions": outcome.instructions,
            })
        };
        let programs: Vec<_> = programs.iter().zip(outcomes).map(one).collect();
        json!({ "good": self.is_good(), "groups": self.rows, "programs": programs }).to_string()
    }

    /// Tests whether everything is as it should be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && !self.rows.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.keys().map(String::len).max().unwrap_or(0).max(5);
        writeln!(
            formatter,
            "{:width$}  programs  passed  known  failed  instructions",
            "group"
        )?;
        let mut sum = Row::default();
        let line = |formatter: &mut fmt::Formatter<'_>, name: &str, row: &Row| {
            writeln!(
                formatter,
                "{name:width$}  {:8}  {:6}  {:5}  {:6}  {:12}",
                row.passed + row.known + row.failed,
                row.passed,
                row.known,
                row.failed,
                row.instructions
            )
        };
        for (name, row) in &self.rows {
            line(formatter, name, row)?;
            sum.passed += row.passed;
            sum.known += row.known;
            sum.failed += row.failed;
            sum.instructions += row.instructions;
        }
        line(formatter, "all", &sum)?;
        for (name, reason) in &self.known {
            writeln!(formatter, "known:  {name}: {reason}")?;
        }
        for (name, reason) in &self.failures {
            writeln!(formatter, "FAILED: {name}: {reason}")?;
        }
        Ok(())
    }
}
