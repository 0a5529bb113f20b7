//! The claims as an HTML page: how many come out, and each claim with its verdict first.

use super::render::name;
use super::{Beside, ClaimBasis, Judged, Outcome};
use crate::drawing::{self, Card, Mark, Page, Pair};
use runner::table::Table;

impl Judged<'_> {
    /// The claims as an HTML page that needs no other.
    pub fn html(&self) -> String {
        let mut page = Page::new("The papers' claims beside our results");
        let hard = self.claims(ClaimBasis::Hard);
        page.paragraph(&super::render::head(ClaimBasis::Hard, &hard));
        page.marks(
            &Outcome::ALL.map(|outcome| (mark(outcome).svg(), String::from(outcome.words()))),
        );
        page.table(&self.counts(&hard));
        page.paragraph(
            "A hard claim is one that a paper measured; a soft one it estimated or argued. A claim comes out where every place that \
             decides says so, in size too. Each verdict is that of the paper's own page, by the rules of docs/why/method.md.",
        );
        for (number, paper) in &self.papers.paper {
            page.heading(&format!("{number}: {}", paper.title));
            let claims: Vec<Beside<'_>> = [ClaimBasis::Hard, ClaimBasis::Soft]
                .into_iter()
                .flat_map(|kind| self.claims(kind))
                .filter(|claim| claim.paper == number)
                .collect();
            match self.results.get(number.as_str()) {
                Some((kept, judgement)) => {
                    page.paragraph(&judgement.source);
                    page.paragraph(&kept.made.words());
                    let pairs = pairs(&claims);
                    if pairs.is_empty() {
                        let mut cases = judgement.cases.iter();
                        if let Some(case) = cases.find(|case| !case.spreads.is_empty()) {
                            page.paragraph(&case.title);
                            crate::paper::draw_exits(&mut page, &case.spreads);
                        }
                    } else {
                        page.figure(
                            &drawing::beside(&pairs, "ratio to the base method (logarithmic)"),
                            "The paper's ratios beside ours, with intervals",
                        );
                        page.marks(&drawing::beside_marks());
                    }
                }
                None => page.paragraph("No result is kept."),
            }
            for claim in &claims {
                page.card(&card(claim));
            }
        }
        crate::provenance::made_by_this(&mut page);
        page.finish()
    }

    /// How many hard claims of each paper came to what.
    fn counts(&self, hard: &[Beside<'_>]) -> Table {
        let mut counts = Table::new(
            [String::from("paper")]
                .into_iter()
                .chain(Outcome::ALL.map(|outcome| String::from(outcome.words()))),
        );
        for (number, paper) in &self.papers.paper {
            let own = hard.iter().filter(|claim| claim.paper == number);
            let own: Vec<Outcome> = own.map(|claim| claim.outcome).collect();
            let count = |outcome| {
                let count = own.iter().filter(|one| **one == outcome).count();
                count.to_string()
            };
            counts.row(
                [format!("{number}: {}", paper.title)]
                    .into_iter()
                    .chain(Outcome::ALL.map(count)),
            );
        }
        counts
    }
}

/// Shape and colour of an outcome.
fn mark(outcome: Outcome) -> Mark {
    match outcome {
        Outcome::ComesOut => Mark::Full,
        Outcome::InDirection => Mark::LowerHalf,
        Outcome::InPart => Mark::LeftHalf,
        Outcome::DoesNotComeOut => Mark::Cross,
        Outcome::Undecided => Mark::Ring,
        Outcome::Shown => Mark::Square,
        Outcome::NotMeasured => Mark::Dash,
    }
}

/// A claim: the verdict, what the paper has, place by place what we have, and why.
fn card(claim: &Beside<'_>) -> Card {
    let kind = match claim.kind {
        ClaimBasis::Hard => "",
        ClaimBasis::Soft => " (soft)",
    };
    let mut table = Table::new(["verdict", "where", "ours"]);
    for found in &claim.found {
        table.row([&found.verdict, &found.place, &found.ours].map(String::as_str));
        for other in &found.beside {
            table.row(["", name(other.method), other.ours.as_str()]);
        }
    }
    Card {
        mark: mark(claim.outcome),
        verdict: String::from(claim.outcome.words()),
        title: format!("{}{kind}", claim.text),
        words: format!("The paper: {}", claim.figure),
        table: (!claim.found.is_empty()).then_some(table),
        below: claim
            .explanation
            .as_ref()
            .map(|reason| format!("Why: {reason}")),
    }
}

/// The claims' ratios that the paper has too.
fn pairs(claims: &[Beside<'_>]) -> Vec<Pair> {
    let found = claims.iter().flat_map(|claim| &claim.found);
    found
        .filter_map(|found| {
            let (paper, median, low, high) = found.ratios?;
            Some(Pair {
                name: found.place.clone(),
                paper,
                ours: (median, low, high),
            })
        })
        .collect()
}
