//! All hard claims of the papers on one page: what each says, what our results have for it, and the verdict.
//!
//! The list is `experiments/papers.toml`. Figures and verdicts come from `docs/results/paper-NNN.json` alone, so that the page says nothing
//! that a paper's own page does not.

use crate::measures::number;
use crate::paper::{CaseResult, Judgement, PublishedError};
use crate::report::Table;
use crate::results::{Content, Kept, ResultsError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The file of the list, in the folder of experiments.
pub const FILE: &str = "papers.toml";

/// The page, in the folder of results.
pub const PAGE: &str = "papers.md";

/// The claims of all papers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Papers {
    /// The papers, by number.
    pub paper: BTreeMap<String, Paper>,
    /// Their hard claims, in the order of the page.
    pub claim: Vec<HardClaim>,
}

/// A paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Paper {
    /// What it is about.
    pub title: String,
    /// The command that repeats it; without it, that is not built yet.
    #[serde(default)]
    pub command: Option<String>,
}

/// A claim that the paper measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HardClaim {
    /// The paper.
    pub paper: String,
    /// What it says.
    pub text: String,
    /// Its figure.
    pub figure: String,
    /// Where our results have it.
    #[serde(default)]
    pub ours: Vec<Place>,
    /// Why it did not come out, or cannot.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A place in a paper's result.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Place {
    /// The table; 0 for what the text alone says.
    #[serde(default)]
    pub table: u32,
    /// The case; without it, an order of effects over cases.
    #[serde(default)]
    pub case: Option<String>,
    /// A measure of the case, with the method.
    #[serde(default)]
    pub measure: Option<String>,
    /// The method.
    #[serde(default)]
    pub method: Option<String>,
    /// What a claim of the case, or an order, begins with.
    #[serde(default)]
    pub claim: Option<String>,
}

/// What our results have for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    place: String,
    ours: String,
    verdict: String,
}

impl Papers {
    /// Reads the list.
    ///
    /// # Errors
    /// It cannot be read, or a claim names a paper that is not in it.
    pub fn read(path: &Path) -> Result<Self, PublishedError> {
        let text = std::fs::read_to_string(path).map_err(|error| PublishedError::File {
            path: path.to_owned(),
            error,
        })?;
        let content = |message| PublishedError::Content {
            path: path.to_owned(),
            message,
        };
        let papers: Self = toml::from_str(&text).map_err(|error| content(error.to_string()))?;
        let unknown = papers
            .claim
            .iter()
            .find(|claim| !papers.paper.contains_key(&claim.paper));
        match unknown {
            Some(claim) => Err(content(format!("there is no paper {}", claim.paper))),
            None => Ok(papers),
        }
    }

    /// The page, from the results in a folder.
    ///
    /// # Errors
    /// A result cannot be read.
    pub fn page(&self, results: &Path) -> Result<String, ResultsError> {
        let mut known = BTreeMap::new();
        for number in self.paper.keys() {
            let path = results.join(format!("paper-{number}.json"));
            if path.is_file()
                && let Content::Paper(judgement) = Kept::read(&path)?.content
            {
                known.insert(number.as_str(), judgement);
            }
        }
        let mut table = Table::new(["paper", "claim", "the paper's", "where", "ours", "verdict"]);
        let mut reasons = String::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for claim in &self.claim {
            let found = self.found(claim, known.get(claim.paper.as_str()).map(|one| &**one));
            for (row, found) in found.iter().enumerate() {
                let first = |text: &String| match row {
                    0 => text.clone(),
                    _ => String::new(),
                };
                table.row([
                    first(&claim.paper),
                    first(&claim.text),
                    first(&claim.figure),
                    found.place.clone(),
                    found.ours.clone(),
                    found.verdict.clone(),
                ]);
                let head = found.verdict.split(':').next().unwrap_or_default();
                *counts.entry(head.to_lowercase()).or_default() += 1;
            }
            if let Some(reason) = &claim.reason {
                reasons += &format!("- **{}, {}**: {reason}\n", claim.paper, claim.text);
            }
        }
        let counts = counts
            .iter()
            .map(|(verdict, count)| format!("{count} {verdict}"));
        let counts: Vec<String> = counts.collect();
        let papers = self.paper.iter().map(|(number, paper)| {
            let command = match (&paper.command, known.contains_key(number.as_str())) {
                (Some(command), true) => format!("`{command}`, [its page](paper-{number}.md)"),
                (Some(command), false) => format!("`{command}`, of which no result is kept yet"),
                (None, _) => String::from("not built"),
            };
            format!("- {number}: {}: {command}\n", paper.title)
        });
        let papers: String = papers.collect();
        Ok(format!(
            "# The papers' hard claims\n\n<!-- Made from the papers' results and experiments/{FILE} by `partita results render`: do not \
             change it by hand. -->\n\n`partita papers` prints this page. A hard claim is one that a paper measured. Verdicts are those \
             of the papers' own pages ([method.md](../method.md)).\n\n{papers}\n{} claims: {}.\n\n```text\n{table}```\n\n\
             ## Why claims did not come out\n\n{reasons}",
            self.claim.len(),
            counts.join(", ")
        ))
    }

    fn found(&self, claim: &HardClaim, judgement: Option<&Judgement>) -> Vec<Found> {
        let alone = |verdict: &str| {
            vec![Found {
                place: String::from("-"),
                ours: String::from("-"),
                verdict: String::from(verdict),
            }]
        };
        let is_built = self
            .paper
            .get(&claim.paper)
            .is_some_and(|paper| paper.command.is_some());
        match (is_built, judgement, claim.ours.is_empty()) {
            (false, ..) => alone("not built"),
            (true, None, _) => alone("no result"),
            (true, Some(_), true) => alone("not measured"),
            (true, Some(judgement), false) => {
                let places = claim.ours.iter();
                places.map(|place| place.find(judgement)).collect()
            }
        }
    }
}

impl Place {
    fn find(&self, judgement: &Judgement) -> Found {
        let named = |case: &&CaseResult| {
            case.table == self.table && self.case.as_ref().is_some_and(|name| *name == case.name)
        };
        let case = judgement.cases.iter().find(named);
        let place = self.name();
        let found = match (&self.claim, case) {
            (Some(text), case) => {
                let own = case.into_iter().flat_map(|case| &case.claims);
                let mut all = own.chain(&judgement.orders);
                let claim = all.find(|claim| claim.text.starts_with(text.as_str()));
                claim.map(|claim| (claim.found.clone(), claim.question.as_claim()))
            }
            (None, Some(case)) => self.effect(case),
            (None, None) => None,
        };
        let (ours, verdict) =
            found.unwrap_or_else(|| (String::from("-"), String::from("not in the result")));
        Found {
            place,
            ours,
            verdict,
        }
    }

    fn name(&self) -> String {
        let case = self.case.as_ref().map(|case| match self.table {
            0 => case.clone(),
            table => format!("{table}/{case}"),
        });
        let rest = [&self.measure, &self.method].into_iter().flatten();
        let words: Vec<String> = case.into_iter().chain(rest.cloned()).collect();
        match words.is_empty() {
            true => String::from("all cases"),
            false => words.join(" "),
        }
    }

    fn effect(&self, case: &CaseResult) -> Option<(String, String)> {
        let (measure, method) = (self.measure.as_ref()?, self.method.as_ref()?);
        let mut effects = case.effects.iter();
        let effect =
            effects.find(|effect| effect.measure == *measure && effect.method == *method)?;
        let ours = match (&effect.ratio, &effect.ours) {
            (Some(ratio), _) => format!(
                "x {:.4} [{:.4} .. {:.4}]",
                ratio.median, ratio.low, ratio.high
            ),
            (None, Some(ours)) => number(ours.median),
            (None, None) => String::from("-"),
        };
        let verdict = effect
            .verdict
            .map(crate::laboratory::verdict::Verdict::words);
        Some((
            ours,
            verdict.unwrap_or_else(|| String::from("shown, not judged")),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn list() -> Papers {
        Papers::read(&tree().join("experiments").join(FILE)).unwrap()
    }

    #[test]
    fn the_page_is_that_of_the_list_and_of_the_results() {
        let results = tree().join("docs/results");
        let page = std::fs::read_to_string(results.join(PAGE)).unwrap();
        assert!(
            page == list().page(&results).unwrap(),
            "partita results render makes {PAGE} anew"
        );
    }

    #[test]
    fn every_place_that_a_claim_names_is_in_the_papers_file() {
        let papers = list();
        for claim in papers.claim.iter().filter(|claim| !claim.ours.is_empty()) {
            let folder = tree().join(format!("experiments/paper-{}", claim.paper));
            let published = crate::paper::Published::read(&folder.join("published.toml")).unwrap();
            for place in &claim.ours {
                let case = published.cases.iter().find(|case| {
                    case.table == place.table && Some(&case.name) == place.case.as_ref()
                });
                let is_there = match (&place.claim, case) {
                    (Some(text), Some(case)) => {
                        case.claims.iter().any(|claim| claim.text.starts_with(text))
                    }
                    (Some(text), None) => published
                        .orders
                        .iter()
                        .any(|order| order.text.starts_with(text)),
                    (None, Some(case)) => {
                        let known = |figure: &crate::paper::Figure| {
                            Some(&figure.measure) == place.measure.as_ref()
                        };
                        let method = place.method.as_ref();
                        case.figures.iter().any(known)
                            && method.is_some_and(|method| {
                                let native = method == "native" && case.native.is_some();
                                native || case.methods.contains(method)
                            })
                    }
                    (None, None) => false,
                };
                assert!(is_there, "{}: {place:?}", claim.text);
            }
        }
    }

    #[test]
    fn a_paper_without_a_command_or_a_result_is_said_to_have_none() {
        let text = "[paper.001]\ntitle = \"t\"\n[paper.002]\ntitle = \"u\"\ncommand = \"partita paper self-wait\"\n\
                    [[claim]]\npaper = \"001\"\ntext = \"a\"\nfigure = \"1\"\n\
                    [[claim]]\npaper = \"002\"\ntext = \"b\"\nfigure = \"2\"\nreason = \"because\"\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, text).unwrap();
        let page = Papers::read(&path).unwrap().page(folder.path()).unwrap();
        for told in [
            "1 no result, 1 not built",
            "**002, b**: because",
            "2 claims",
        ] {
            assert!(page.contains(told), "{page}");
        }
        std::fs::write(&path, text.replace("paper = \"001\"", "paper = \"009\"")).unwrap();
        let error = Papers::read(&path).unwrap_err().to_string();
        assert!(error.contains("no paper 009"), "{error}");
    }
}
