//! Mutants: faults that are put into the hypervisor one at a time, to see which of them the farm convicts.
//!
//! A mutant is a file of its own in `crates/fuzz/mutants`, and no code of the product: it names a source file, a text that stands there once,
//! and what stands there with the fault. A mutant is built from a copy of the sources ([`Tree`]), so the tree that is worked on is never wrong.

mod tree;
mod trial;

pub use tree::{Tree, TreeError};
pub use trial::{Hypervisors, MutantTrial, Outcome, try_mutant, try_sound};

use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Ending of a mutant's file; its name without it is the mutant's.
const ENDING: &str = "toml";

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Name, which is that of its file.
    #[serde(skip)]
    pub name: String,
    /// Effect of the fault, in a sentence.
    pub fault: String,
    /// Where such a fault was: in a commit of this project, in a peer, in a publication; or the rule that it breaks.
    pub origin: String,
    /// Source file, seen from the root of the sources.
    pub file: PathBuf,
    /// Text that stands there once.
    pub before: String,
    /// Text that stands there with the fault.
    pub after: String,
}

/// Reason why a mutant is no change of the sources.
#[derive(Debug, thiserror::Error)]
pub enum MutantError {
    /// The mutant's file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// The mutant's file is none.
    #[error("{path}: {error}", path = path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// Cause.
        error: toml::de::Error,
    },
    /// No mutant has this name.
    #[error("there is no mutant {0}")]
    Unknown(String),
    /// The text is not there, or more than once.
    #[error("{name} does not apply: its text stands {count} times in {file}", file = file.display())]
    DoesNotApply {
        /// The mutant.
        name: String,
        /// The source file.
        file: PathBuf,
        /// How often the text stands there.
        count: usize,
    },
    /// The fault changes nothing.
    #[error("{0} changes nothing")]
    Nothing(String),
}

impl Mutant {
    /// Reads the mutants in a folder, in the order of their names; all of them, or those that are named.
    ///
    /// # Errors
    /// [`MutantError::File`], [`MutantError::Format`], [`MutantError::Unknown`].
    pub fn read_all(folder: &Path, names: &[String]) -> Result<Vec<Self>, MutantError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |error| MutantError::File { path, error }
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(at(folder))? {
            paths.push(entry.map_err(at(folder))?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
        paths.sort();
        let mutants = paths.iter().map(|path| Self::read(path));
        let mutants = mutants.collect::<Result<Vec<_>, _>>()?;
        for name in names {
            if !mutants.iter().any(|mutant| mutant.name == *name) {
                return Err(MutantError::Unknown(name.clone()));
            }
        }
        let is_chosen = |mutant: &Self| names.is_empty() || names.contains(&mutant.name);
        Ok(mutants.into_iter().filter(is_chosen).collect())
    }

    fn read(path: &Path) -> Result<Self, MutantError> {
        let text = std::fs::read_to_string(path).map_err(|error| MutantError::File {
            path: path.to_path_buf(),
            error,
        })?;
        let mutant: Self = toml::from_str(&text).map_err(|error| MutantError::Format {
            path: path.to_path_buf(),
            error,
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: name.into_owned(),
            ..mutant
        })
    }

    /// The source file's text with the fault.
    ///
    /// # Errors
    /// [`MutantError::DoesNotApply`], [`MutantError::Nothing`].
    pub fn apply(&self, text: &str) -> Result<String, MutantError> {
        let count = text.matches(&self.before).count();
        if count != 1 {
            return Err(MutantError::DoesNotApply {
                name: self.name.clone(),
                file: self.file.clone(),
                count,
            });
        }
        if self.before == self.after {
            return Err(MutantError::Nothing(self.name.clone()));
        }
        Ok(text.replacen(&self.before, &self.after, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(before: &str, after: &str) -> Mutant {
        Mutant {
            name: String::from("one"),
            fault: String::new(),
            origin: String::new(),
            file: PathBuf::from("a.rs"),
            before: String::from(before),
            after: String::from(after),
        }
    }

    #[test]
    fn text_is_replaced_where_it_stands_once() {
        assert_eq!(mutant("b\n", "").apply("a\nb\nc\n").unwrap(), "a\nc\n");
        for (text, times) in [("a\n", 0), ("b\nb\n", 2)] {
            let refused = mutant("b\n", "").apply(text);
            assert!(
                matches!(refused, Err(MutantError::DoesNotApply { count, .. }) if count == times)
            );
        }
        let nothing = mutant("b", "b").apply("b");
        assert!(matches!(nothing, Err(MutantError::Nothing(_))));
    }

    /// A change of a line that a mutant changes is a change of the mutant too.
    #[test]
    fn every_mutant_applies_to_the_sources() {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = crate_folder.join("../..");
        let mutants = Mutant::read_all(&crate_folder.join("mutants"), &[]).unwrap();
        assert!(!mutants.is_empty());
        let mut places = std::collections::BTreeSet::new();
        for mutant in &mutants {
            let text = std::fs::read_to_string(root.join(&mutant.file)).unwrap();
            mutant
                .apply(&text)
                .unwrap_or_else(|error| panic!("{error}"));
            assert!(mutant.fault.ends_with('.') && !mutant.origin.is_empty());
            let change = (&mutant.file, &mutant.before, &mutant.after);
            assert!(places.insert(change), "{}: there already", mutant.name);
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let names = [String::from("none")];
        let refused = Mutant::read_all(folder.path(), &names);
        assert!(matches!(refused, Err(MutantError::Unknown(name)) if name == "none"));
    }
}
