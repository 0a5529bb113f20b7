//! The file of claims.

use super::EVENT;
use abi::monitor::Event;
use runner::measures;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// All claims of a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claims {
    /// Their subject.
    pub title: String,
    /// The claims in the order in which they are shown.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// One claim, and the runs that show it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// By which it is asked for.
    pub name: String,
    /// The claim.
    pub text: String,
    /// The system file, beside the file of claims.
    pub system: String,
    /// The machine's profile: the name of one that ships, or a file beside the file of claims.
    #[serde(default)]
    pub profile: Option<String>,
    /// The key whose values are compared.
    pub vary: String,
    /// Its values.
    pub methods: Vec<String>,
    /// Changes to the system, each a `KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Settings for the machine alone.
    #[serde(default)]
    pub on_machine: Where,
    /// Settings for QEMU alone.
    #[serde(default)]
    pub on_qemu: Where,
    /// Tests that must hold.
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
    /// Known facts about a claim that does not come out.
    #[serde(default)]
    pub note: Option<String>,
}

/// Settings for one computer alone.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Where {
    /// More changes to the system.
    #[serde(default)]
    pub set: Vec<String>,
    /// One run for each method is enough: its length makes up for start phases. It is measured from its boot; several of a Debian
    /// system go on from the checkpoint at which its guests begin their work.
    #[serde(default)]
    pub once: bool,
    /// Why it is not run there at all.
    #[serde(default)]
    pub not: Option<String>,
}

/// Test of a figure: the sum of some measures, perhaps divided by the sum of others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Test {
    /// The measures that are summed. An event without a count is zero.
    pub measure: Vec<String>,
    /// By the sum of which it is divided.
    #[serde(default)]
    pub per: Vec<String>,
    /// The methods for which it must hold.
    pub of: Vec<String>,
    /// The method with which they are compared, run by run; without it the figure itself is meant.
    #[serde(default)]
    pub to: Option<String>,
    /// How: as ratio unless it says `difference`.
    #[serde(default)]
    pub difference: bool,
    /// The least that the median may be.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// The most.
    #[serde(default)]
    pub at_most: Option<f64>,
}

/// One side of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
}

impl Test {
    /// Bounds of the median.
    pub fn bounds(&self) -> impl Iterator<Item = Bound> {
        let least = self.at_least.map(Bound::AtLeast);
        least.into_iter().chain(self.at_most.map(Bound::AtMost))
    }

    /// The figure's name, as the file gives it.
    pub fn figure(&self) -> String {
        let sum = self.measure.join(" + ");
        match &self.per[..] {
            [] => sum,
            per => format!("({sum}) / ({})", per.join(" + ")),
        }
    }
}

/// Why a file of claims is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ClaimsError {
    /// The file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// The file is no TOML, or has other keys than those known.
    #[error("{path}: {error}", path = path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// The problem with its line.
        error: Box<toml::de::Error>,
    },
    /// A claim contradicts itself.
    #[error("{path}: the claim {claim:?}: {message}", path = path.display())]
    Claim {
        /// Which file.
        path: PathBuf,
        /// Which claim.
        claim: String,
        /// The problem.
        message: String,
    },
    /// There is no claim of this name.
    #[error("there is no claim {name:?}; there are {known}")]
    NoSuchClaim {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
}

impl Claims {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ClaimsError`].
    pub fn read(path: &Path) -> Result<Self, ClaimsError> {
        let text = std::fs::read_to_string(path).map_err(|error| ClaimsError::File {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(path, &text)
    }

    /// Reads and checks a file's text; `path` is for messages.
    ///
    /// # Errors
    /// [`ClaimsError`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, ClaimsError> {
        let claims: Self = toml::from_str(text).map_err(|error| ClaimsError::Form {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        for (index, claim) in claims.claims.iter().enumerate() {
            let before = claims.claims.iter().take(index);
            let twice = before.clone().any(|other| other.name == claim.name);
            let message = if twice {
                Some(String::from("the name is taken; choose another"))
            } else {
                claim.mistake()
            };
            if let Some(message) = message {
                return Err(ClaimsError::Claim {
                    path: path.to_owned(),
                    claim: claim.name.clone(),
                    message,
                });
            }
        }
        Ok(claims)
    }

    /// The claims of these names, or all where none is named.
    ///
    /// # Errors
    /// [`ClaimsError::NoSuchClaim`].
    pub fn named(&self, names: &[String]) -> Result<Vec<&Claim>, ClaimsError> {
        if names.is_empty() {
            return Ok(self.claims.iter().collect());
        }
        let find = |name: &String| {
            let claim = self.claims.iter().find(|claim| claim.name == *name);
            claim.ok_or_else(|| ClaimsError::NoSuchClaim {
                name: name.clone(),
                known: (self.claims.iter())
                    .map(|claim| claim.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        names.iter().map(find).collect()
    }
}

impl Claim {
    fn mistake(&self) -> Option<String> {
        if self.tests.is_empty() {
            return Some(String::from("nothing is tested; add a [[claim.test]]"));
        }
        for test in &self.tests {
            let methods = test.of.iter().chain(&test.to);
            for method in methods {
                if !self.methods.contains(method) {
                    return Some(format!("{method:?} is not among its methods; add it there"));
                }
            }
            if test.measure.is_empty() || test.of.is_empty() {
                return Some(String::from("a test needs a measure and a method"));
            }
            let mut named = test.measure.iter().chain(&test.per);
            if let Some(error) = named.find_map(|name| check_measure(name).err()) {
                return Some(error);
            }
            if test.bounds().next().is_none() {
                return Some(format!(
                    "the test of {} has neither at-least nor at-most",
                    test.figure()
                ));
            }
        }
        None
    }
}

/// Refuses a figure that no run has: it must not pass for an event that never happened.
fn check_measure(name: &str) -> Result<(), String> {
    measures::known(name)?;
    match name.strip_prefix(EVENT) {
        Some(event) if Event::ALL.iter().all(|known| known.name() != event) => {
            Err(format!("there is no event {event:?}"))
        }
        _ => Ok(()),
    }
}
