//! The claims as people read them on a terminal and on the page of the results.

use super::{Beside, ClaimBasis, FILE, Judged, Outcome};
use crate::paper::KVM;
use std::fmt::Write;

/// The longest text of what came out that stands in its column; what is longer stands on a line of its own.
const COLUMN: usize = 40;

impl Judged<'_> {
    /// The claims as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for kind in [ClaimBasis::Hard, ClaimBasis::Soft] {
            let claims = self.claims(kind);
            if claims.is_empty() {
                continue;
            }
            // Writing to a String does not fail.
            let _ = writeln!(text, "{}", head(kind, &claims));
            let mut paper = "";
            for claim in &claims {
                if claim.paper != paper {
                    let _ = writeln!(text, "\n{}: {}", claim.paper, self.title(claim.paper));
                    paper = claim.paper;
                }
                text += &of(claim);
            }
            text += "\n";
        }
        text
    }

    /// The page of the results.
    pub fn page(&self) -> String {
        let mut papers = String::new();
        for (number, paper) in &self.papers.paper {
            let title = &paper.title;
            // Writing to a String does not fail.
            let _ = match (&paper.command, self.results.get(number.as_str())) {
                (Some(command), Some((kept, _))) => {
                    let how = if kept.made.quick {
                        ", from shorter runs"
                    } else {
                        ""
                    };
                    writeln!(
                        papers,
                        "- {number}: {title}: `{command}`, [its page](paper-{number}.md){how}"
                    )
                }
                (Some(command), None) => {
                    writeln!(
                        papers,
                        "- {number}: {title}: `{command}`, of which no result is kept yet"
                    )
                }
                (None, _) => writeln!(papers, "- {number}: {title}: not built"),
            };
        }
        format!(
            "# The papers' claims\n\n<!-- Made from the papers' results and experiments/{FILE} by `partita results render`: do not \
             change it by hand. -->\n\n`partita paper --all` prints the list, `partita paper --all --run --quick` makes what is missing first, and \
             `--report FILE` draws it. A hard claim is one that a paper measured; a soft one it estimated or argued. A claim comes out \
             where every place that decides says so. Verdicts are those of the papers' own pages ([method.md](../why/method.md)).\n\n\
             {papers}\n```text\n{}```\n",
            self.text()
        )
    }

    /// All claims for programs.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "hard": self.claims(ClaimBasis::Hard), "soft": self.claims(ClaimBasis::Soft) })
    }

    fn title(&self, number: &str) -> &str {
        let paper = self.papers.paper.get(number);
        paper.map_or("", |paper| paper.title.as_str())
    }
}

/// How many claims there are, and how many came to what.
pub(super) fn head(kind: ClaimBasis, claims: &[Beside<'_>]) -> String {
    let counts = Outcome::ALL.iter().filter_map(|outcome| {
        let count = claims.iter().filter(|claim| claim.outcome == *outcome);
        let count = count.count();
        let words = match count {
            1 => outcome.words(),
            _ => outcome.counted(),
        };
        (count > 0).then(|| format!("{count} {words}"))
    });
    let counts: Vec<String> = counts.collect();
    let kind = match kind {
        ClaimBasis::Hard => "hard",
        ClaimBasis::Soft => "soft",
    };
    let claims = match claims.len() {
        1 => format!("1 {kind} claim"),
        count => format!("{count} {kind} claims"),
    };
    format!("{claims}: {}", counts.join(", "))
}

/// One claim: what it says, what the paper has, what we have place by place, and why.
fn of(claim: &Beside<'_>) -> String {
    let mut text = format!(
        "  {}: {}\n    the paper: {}\n",
        claim.outcome.words().to_uppercase(),
        claim.text,
        claim.figure
    );
    let width = |cells: &mut dyn Iterator<Item = &String>| {
        let lengths = cells.map(|cell| cell.chars().count());
        lengths
            .filter(|length| *length <= COLUMN)
            .max()
            .unwrap_or(0)
    };
    let places = width(&mut claim.found.iter().map(|found| &found.place));
    let mut all = claim.found.iter().flat_map(|found| {
        let beside = found.beside.iter().map(|other| &other.ours);
        std::iter::once(&found.ours).chain(beside)
    });
    let ours = width(&mut all);
    for found in &claim.found {
        // Writing to a String does not fail.
        let _ = match found.ours.chars().count() > COLUMN {
            true => writeln!(
                text,
                "    {:<places$}  {}\n        {}",
                found.place, found.verdict, found.ours
            ),
            false => writeln!(
                text,
                "    {:<places$}  {:>ours$}  {}",
                found.place, found.ours, found.verdict
            ),
        };
        for other in &found.beside {
            let _ = writeln!(
                text,
                "    {:<places$}  {:>ours$}  {}",
                "",
                other.ours,
                name(other.method)
            );
        }
    }
    if let Some(reason) = &claim.explanation {
        let _ = writeln!(text, "    why: {reason}");
    }
    text
}

/// Name on a page of a method that stands beside ours.
pub(super) fn name(method: &'static str) -> &'static str {
    match method {
        KVM => "KVM",
        other => other,
    }
}
