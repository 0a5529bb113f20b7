//! Results that documents show: each is a file `docs/results/NAME.json`, and its page is made from that file alone.
//!
//! `partita results refresh` runs what is missing and writes the files; `partita results render` makes the pages, and with
//! `--check` says which are not those of their files. A test of this module does the same, so a stale page fails.

mod lines;

use crate::claims::{self, Judged};
use crate::laboratory::Entry;
use crate::paper::{self, Judgement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use system::fingerprint::Fingerprint;

/// The form of the files that this command writes and reads.
pub const FORM: u32 = 1;

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// [`FORM`] of the file.
    pub form: u32,
    /// The words after `partita` that make it anew.
    pub command: Vec<String>,
    /// Its makers.
    pub made: Provenance,
    /// Its content.
    pub content: Content,
}

/// Makers of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// How it was made, in words.
    pub how: String,
    /// Set if the runs were shorter than the full ones.
    pub quick: bool,
    /// How many runs.
    pub runs: usize,
    /// Fingerprints of the command, the hypervisor, the kernels and the disks, by what they are.
    pub files: BTreeMap<String, Vec<Fingerprint>>,
}

/// Its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Of a paper.
    Paper(Box<Judgement>),
    /// Of claims.
    Claims {
        /// Their subject.
        title: String,
        /// The claims.
        claims: Vec<Judged>,
        /// Their correction for multiple comparisons.
        below: String,
    },
}

/// Why results cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// A result that is none.
    #[error("{path}: {error}; partita results refresh makes it anew", path = path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: String,
    },
}

impl Provenance {
    /// Of these runs. A kernel is called by what it is for any VM, as all VMs of a table mostly have the same.
    pub fn of(entries: &[Entry], how: String, quick: bool) -> Self {
        let mut files: BTreeMap<String, Vec<Fingerprint>> = BTreeMap::new();
        for (what, print) in entries.iter().flat_map(|entry| &entry.made_by.files) {
            let what = match what.strip_prefix("vm.") {
                Some(of_vm) => of_vm.split_once('.').map_or(of_vm, |(_, part)| part),
                None => what,
            };
            let prints = files.entry(String::from(what)).or_default();
            if !prints.contains(print) {
                prints.push(print.clone());
            }
        }
        for prints in files.values_mut() {
            prints.sort();
        }
        Self {
            how,
            quick,
            runs: entries.len(),
            files,
        }
    }

    /// How it was made and by what, in words.
    pub fn words(&self) -> String {
        let length = match self.quick {
            true => format!(" {}", SHORTER.replace('`', "")),
            false => String::new(),
        };
        let (how, runs) = (&self.how, self.runs);
        format!("{how} {runs} runs.{length} Made by: {}.", self.files())
    }

    /// Its makers: each file with the first digits of its fingerprint.
    fn files(&self) -> String {
        let files = self.files.iter().map(|(what, prints)| {
            let prints: Vec<&str> = prints.iter().map(Fingerprint::short).collect();
            format!("{what} {}", prints.join(" and "))
        });
        files.collect::<Vec<_>>().join(", ")
    }
}

/// Sentence about shorter runs.
const SHORTER: &str =
    "From shorter runs (`--quick`): figures near an edge may turn in the full ones.";

impl Kept {
    /// The page of a result.
    pub fn page(&self, name: &str) -> String {
        let (title, text) = match &self.content {
            Content::Paper(judgement) => (judgement.title.clone(), paper::show(judgement)),
            Content::Claims {
                title,
                claims,
                below,
            } => {
                let each = claims.iter().map(claims::show);
                let text = each.collect::<Vec<_>>().join("\n");
                (title.clone(), format!("{text}\n{below}\n"))
            }
        };
        format!(
            "# {title}\n\n<!-- Made from {name}.json by `partita results render`: change neither by hand. -->\n\n\
             `partita results refresh {name}` makes this page anew; [method.md](../why/method.md) says what a verdict means.\n\n\
             {} {} runs.{}\n\nMade by: {}.\n\n```text\n{text}```\n",
            self.made.how,
            self.made.runs,
            match self.made.quick {
                true => format!(" **{SHORTER}**"),
                false => String::new(),
            },
            self.made.files()
        )
    }

    /// Runs that failed, and effects where there can be none.
    pub fn failures(&self) -> Vec<String> {
        match &self.content {
            Content::Paper(judgement) => judgement.failures(),
            Content::Claims { claims, .. } => {
                let each = claims.iter().flat_map(|claim| &claim.failures);
                each.cloned().collect()
            }
        }
    }

    /// Reads a result.
    ///
    /// # Errors
    /// [`ResultsError`].
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let text = read(path)?;
        let form = |error: String| ResultsError::Form {
            path: path.to_owned(),
            error,
        };
        let kept: Self = serde_json::from_str(&text).map_err(|error| form(error.to_string()))?;
        match kept.form {
            FORM => Ok(kept),
            other => Err(form(format!("its form is {other}, not {FORM}"))),
        }
    }

    /// As the file holds it.
    pub fn text(&self) -> String {
        // Text keys and plain values alone: this cannot fail.
        lines::to_string(self).unwrap_or_default() + "\n"
    }
}

/// The names of the results in a folder, in order.
///
/// # Errors
/// The folder cannot be read.
pub fn names(folder: &Path) -> Result<Vec<String>, ResultsError> {
    let at = |error| ResultsError::File {
        path: folder.to_owned(),
        error,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at)? {
        let name = entry.map_err(at)?.file_name();
        let name = name.to_string_lossy();
        names.extend(name.strip_suffix(".json").map(String::from));
    }
    names.sort();
    Ok(names)
}

/// The file of a result, and its page.
pub fn places(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let with = |ending: &str| folder.join(format!("{name}.{ending}"));
    (with("json"), with("md"))
}

/// The pages of a folder that are not those of their files, each with what it should be.
///
/// # Errors
/// [`ResultsError`].
pub fn stale(folder: &Path) -> Result<Vec<(PathBuf, String)>, ResultsError> {
    let mut stale = Vec::new();
    for name in names(folder)? {
        let (file, page) = places(folder, &name);
        let wanted = Kept::read(&file)?.page(&name);
        let there = if page.is_file() {
            read(&page)?
        } else {
            String::new()
        };
        if there != wanted {
            stale.push((page, wanted));
        }
    }
    Ok(stale)
}

fn read(path: &Path) -> Result<String, ResultsError> {
    std::fs::read_to_string(path).map_err(|error| ResultsError::File {
        path: path.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept {
        Kept {
            form: FORM,
            command: ["claims", "faster"].map(String::from).to_vec(),
            made: Provenance {
                how: String::from("On the machine."),
                quick: true,
                runs: 10,
                files: BTreeMap::from([(String::from("partita"), vec![Fingerprint::of(b"a")])]),
            },
            content: Content::Claims {
                title: String::from("Two"),
                claims: Vec::new(),
                below: String::from("0 comparisons"),
            },
        }
    }

    #[test]
    fn stale_pages_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (file, page) = places(folder.path(), "one");
        std::fs::write(&file, kept().text()).unwrap();
        assert_eq!(Kept::read(&file).unwrap(), kept());
        let stale = || stale(folder.path()).unwrap();
        // No page is a stale page.
        let [(path, wanted)] = &stale()[..] else {
            panic!("{:?}", stale())
        };
        assert_eq!(*path, page);
        for told in [
            "# Two",
            "shorter runs",
            "10 runs",
            "0 comparisons",
            "refresh one",
        ] {
            assert!(wanted.contains(told), "{wanted}");
        }
        std::fs::write(&page, wanted).unwrap();
        assert!(stale().is_empty());
        std::fs::write(&page, wanted.replace("10 runs", "11 runs")).unwrap();
        assert_eq!(stale().len(), 1);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = places(folder.path(), "one");
        let other = kept().text().replacen("\"form\": 1", "\"form\": 2", 1);
        for (text, told) in [("{", "EOF"), (&other[..], "its form is 2, not 1")] {
            std::fs::write(&file, text).unwrap();
            let error = stale(folder.path()).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("refresh"), "{error}");
        }
    }

    #[test]
    fn shipped_pages_match_their_files() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let stale: Vec<PathBuf> = stale(&folder)
            .unwrap()
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert!(
            stale.is_empty(),
            "partita results render makes these pages anew: {stale:?}"
        );
    }
}
