//! All claims of the papers on one page: what each says, what our results have for it, and what came of it.
//!
//! The list is `experiments/papers.toml`. Figures and verdicts come from `docs/results/paper-NNN.json` alone, so that the page says nothing
//! that a paper's own page does not.

mod explanation;
mod lookup;
mod page;
mod render;
#[cfg(test)]
mod tests;

pub use lookup::{Found, Outcome};

use crate::paper::{Judgement, PublishedError};
use crate::results::{Content, Kept, ResultsError};
use serde::{Deserialize, Serialize};
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
    /// Their claims, in the order of the page.
    pub claim: Vec<PaperClaim>,
}

/// A paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Paper {
    /// Its subject.
    pub title: String,
    /// The command that repeats it; without it, that is not built yet.
    #[serde(default)]
    pub command: Option<String>,
}

/// How a paper came to a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimBasis {
    /// The paper measured it.
    #[default]
    Hard,
    /// The paper estimated, modelled or argued it.
    Soft,
}

/// A claim of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PaperClaim {
    /// The paper.
    pub paper: String,
    /// How the paper came to it.
    #[serde(default)]
    pub kind: ClaimBasis,
    /// Its text.
    pub text: String,
    /// Its figure.
    pub figure: String,
    /// Where our results have it.
    #[serde(default)]
    pub ours: Vec<Place>,
    /// Why it did not come out, or cannot.
    #[serde(default)]
    pub explanation: Option<String>,
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
    /// Beginning of a claim of the case, or of an order.
    #[serde(default)]
    pub claim: Option<String>,
    /// An event whose cost is in the paper's table, and its condition.
    #[serde(default)]
    pub event: Option<[String; 2]>,
    /// Beginning of a negative case.
    #[serde(default)]
    pub negative: Option<String>,
}

/// A claim beside what our results have for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside<'a> {
    /// The paper.
    pub paper: &'a str,
    /// How the paper came to it.
    pub kind: ClaimBasis,
    /// Its text.
    pub text: &'a str,
    /// Its figure.
    pub figure: &'a str,
    /// Its outcome.
    pub outcome: Outcome,
    /// Place by place.
    pub found: Vec<Found>,
    /// Why it did not come out, or cannot, with its figures.
    #[serde(rename = "reason")]
    pub explanation: Option<String>,
}

/// All claims beside our results.
#[derive(Debug)]
pub struct Judged<'a> {
    papers: &'a Papers,
    results: BTreeMap<&'a str, (Kept, Box<Judgement>)>,
}

impl Papers {
    /// Reads the list.
    ///
    /// # Errors
    /// The list cannot be read, or a claim names a paper that is not in it.
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

    /// The claims beside the results of a folder.
    ///
    /// # Errors
    /// A result cannot be read.
    pub fn beside(&self, results: &Path) -> Result<Judged<'_>, ResultsError> {
        let mut known = BTreeMap::new();
        for number in self.paper.keys() {
            let path = results.join(format!("paper-{number}.json"));
            if path.is_file() {
                let kept = Kept::read(&path)?;
                if let Content::Paper(judgement) = &kept.content {
                    let judgement = judgement.clone();
                    known.insert(number.as_str(), (kept, judgement));
                }
            }
        }
        Ok(Judged {
            papers: self,
            results: known,
        })
    }
}
