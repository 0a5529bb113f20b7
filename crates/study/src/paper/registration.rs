//! Registration: what a paper's runs are to be is fixed before any method is compared.
//!
//! `partita paper NAME --register` writes `registered.toml` beside the paper's `published.toml`: the fingerprint of every file that
//! says what is run and what is predicted, and the commit that holds them. Every later report names that commit, and each file
//! that has changed since.

use super::Published;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use system::fingerprint::Fingerprint;
use system::fingerprint::Fingerprints;

/// The file of a registration.
pub const FILE: &str = "registered.toml";

/// Its first lines.
const HEAD: &str = "# Written by `partita paper NAME --register`. What is run and what is predicted is in these files, as \
they were in this\n# commit; reports name each of them that has changed since.\n\n";

/// The registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// The commit whose tree holds the files.
    pub commit: String,
    /// The files, by their paths from the folder of all papers.
    pub files: BTreeMap<String, Fingerprint>,
}

/// A paper's files beside its registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing was registered.
    Never,
    /// Something was.
    Registered {
        /// The commit.
        commit: String,
        /// How many files.
        files: usize,
        /// Change since then: a file and how.
        changed: Vec<(String, Change)>,
    },
}

/// How a file has changed since it was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The file has other contents.
    Differs,
    /// The file was not there.
    New,
    /// The file is not there any more.
    Gone,
}

/// Why nothing was registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// A file cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// The registration cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Form {
        /// Its file.
        path: PathBuf,
        /// The problem.
        error: Box<toml::de::Error>,
    },
    /// Files to be registered that are in no commit.
    #[error("commit these first, so that the registration can name a commit that holds them: {}", .0.join(", "))]
    NotCommitted(Vec<String>),
    /// Comparisons that the full form could hardly decide.
    #[error(
        "the full form has too few start phases for {} of its comparisons; raise `phases` and `max-phases` of their cases in \
         published.toml:\n  {}",
        .0.len(), .0.join("\n  ")
    )]
    TooFewPhases(Vec<String>),
    /// git.
    #[error("git: {0}")]
    Git(String),
}

impl State {
    /// In a line, with a line for each change.
    pub fn words(&self) -> String {
        match self {
            Self::Never => String::from(
                "NOT REGISTERED: nothing says that workloads and predictions stood before the methods were compared.",
            ),
            Self::Registered {
                commit,
                files,
                changed,
            } => {
                let short = commit.get(..12).unwrap_or(commit);
                if changed.is_empty() {
                    return format!(
                        "Registered before run: {files} files, unchanged since commit {short}."
                    );
                }
                let of = |(file, change): &(String, Change)| {
                    let change = match change {
                        Change::Differs => "has changed",
                        Change::New => "is new",
                        Change::Gone => "is not there",
                    };
                    format!("\n  {file} {change}")
                };
                let changes: String = changed.iter().map(of).collect();
                format!("Registered at commit {short}, and CHANGED SINCE:{changes}")
            }
        }
    }
}

/// Every file that a paper's results follow from, by its path from `experiments`: all of its folder, the systems of other folders
/// that it names, and the profiles of the paper's computer and of others that cases are run on.
fn files(experiments: &Path, folder: &str, paper: &Published) -> std::io::Result<Vec<String>> {
    let profiles = paper.profiles().into_iter().chain([super::PROFILE]);
    let mut names: Vec<String> = profiles
        .map(|profile| format!("../profiles/{profile}.toml"))
        .collect();
    let mut folders = vec![String::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(experiments.join(&folder))? {
            let entry = entry?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(name);
            } else if entry.file_name() != FILE {
                names.push(name);
            }
        }
    }
    let cases = paper.cases.iter().map(|case| &case.system);
    let systems = cases.chain(paper.negatives.iter().map(|negative| &negative.system));
    for system in systems {
        if let Ok(other) = system.strip_prefix("..") {
            names.push(other.display().to_string());
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn fingerprints(
    experiments: &Path,
    folder: &str,
    paper: &Published,
) -> Result<BTreeMap<String, Fingerprint>, RegistrationError> {
    let at = |path: PathBuf| move |error| RegistrationError::File { path, error };
    let names = files(experiments, folder, paper).map_err(at(experiments.join(folder)))?;
    let mut known = Fingerprints::new();
    let mut all = BTreeMap::new();
    for name in names {
        let path = experiments.join(&name);
        // A profile is not beside an installed command; there it is in the command.
        if path.is_file() {
            let print = known.of(&path).map_err(at(path))?;
            all.insert(name, print);
        }
    }
    Ok(all)
}

/// A paper's files beside its registration. `folder` is the paper's in `experiments`.
///
/// # Errors
/// A file cannot be read.
pub fn state(
    experiments: &Path,
    folder: &str,
    paper: &Published,
) -> Result<State, RegistrationError> {
    let path = experiments.join(folder).join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::Never),
        Err(error) => return Err(RegistrationError::File { path, error }),
    };
    let registered: Registration = toml::from_str(&text).map_err(|error| {
        let error = Box::new(error);
        RegistrationError::Form { path, error }
    })?;
    let now = fingerprints(experiments, folder, paper)?;
    let mut changed = Vec::new();
    for (name, print) in &registered.files {
        match now.get(name) {
            None => changed.push((name.clone(), Change::Gone)),
            Some(own) if own != print => changed.push((name.clone(), Change::Differs)),
            Some(_) => {}
        }
    }
    let new = now
        .keys()
        .filter(|name| !registered.files.contains_key(*name));
    changed.extend(new.map(|name| (name.clone(), Change::New)));
    Ok(State::Registered {
        commit: registered.commit,
        files: registered.files.len(),
        changed,
    })
}

/// Registers a paper's files as they are in the last commit.
///
/// # Errors
/// One of them is not as in that commit, or git cannot be asked.
pub fn register(
    experiments: &Path,
    folder: &str,
    paper: &Published,
) -> Result<Registration, RegistrationError> {
    let files = fingerprints(experiments, folder, paper)?;
    let mut words = vec!["status", "--porcelain", "--untracked-files=all", "--"];
    words.extend(files.keys().map(String::as_str));
    let status = git(experiments, &words)?;
    let changed: Vec<String> = status
        .lines()
        .map(|line| String::from(line.get(3..).unwrap_or(line)))
        .collect();
    if !changed.is_empty() {
        return Err(RegistrationError::NotCommitted(changed));
    }
    let commit = git(experiments, &["rev-parse", "HEAD"])?;
    let registration = Registration {
        commit: String::from(commit.trim()),
        files,
    };
    let path = experiments.join(folder).join(FILE);
    // Text keys and plain values alone: this cannot fail.
    let text = toml::to_string(&registration).unwrap_or_default();
    let written = std::fs::write(&path, format!("{HEAD}{text}"));
    written.map_err(|error| RegistrationError::File { path, error })?;
    Ok(registration)
}

fn git(folder: &Path, words: &[&str]) -> Result<String, RegistrationError> {
    let failed = |error: std::io::Error| RegistrationError::Git(error.to_string());
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(words)
        .output()
        .map_err(failed)?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(RegistrationError::Git(String::from(said.trim())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = "title = \"t\"\nsource = \"s\"\nvary = \"wait\"\n[[case]]\ntable = 1\nname = \"1\"\n\
                         title = \"c\"\nsystem = \"../other/light.toml\"\nmethods = [\"self-wait\"]\n";

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn commit(folder: &Path) {
        git(folder, &["add", "--all"]).unwrap();
        let words = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "--quiet",
            "--message=a",
        ];
        git(folder, &words).unwrap();
    }

    #[test]
    fn registration_names_commit_and_changes() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        git(root, &["init", "--quiet"]).unwrap();
        for (name, text) in [
            ("experiments/paper/published.toml", PAPER),
            ("experiments/paper/work/1.args", "jobs=1"),
            ("experiments/other/light.toml", "harts = 1"),
            ("experiments/other/unrelated.toml", "harts = 1"),
            ("profiles/mainframe-1994.toml", "hertz = 1"),
        ] {
            write(root, name, text);
        }
        let experiments = root.join("experiments");
        let paper = Published::read(&experiments.join("paper/published.toml")).unwrap();
        let state = || state(&experiments, "paper", &paper).unwrap();
        assert_eq!(state(), State::Never);
        // What is in no commit is not registered.
        let error = register(&experiments, "paper", &paper).unwrap_err();
        assert!(error.to_string().contains("published.toml"), "{error}");
        assert_eq!(state(), State::Never);
        commit(root);
        let registration = register(&experiments, "paper", &paper).unwrap();
        let names: Vec<&str> = registration.files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "../profiles/mainframe-1994.toml",
                "other/light.toml",
                "paper/published.toml",
                "paper/work/1.args"
            ]
        );
        let head = git(root, &["rev-parse", "HEAD"]).unwrap();
        assert_eq!(registration.commit, head.trim());
        let changed = || match state() {
            State::Registered { changed, .. } => changed,
            State::Never => panic!("not registered"),
        };
        assert_eq!(changed(), []);
        assert!(state().words().contains(&head[..12]));
        // Nothing of another paper matters.
        write(root, "experiments/other/unrelated.toml", "harts = 2");
        assert_eq!(changed(), []);
        write(root, "experiments/paper/work/1.args", "jobs=2");
        write(root, "experiments/paper/work/2.args", "jobs=2");
        std::fs::remove_file(root.join("experiments/other/light.toml")).unwrap();
        assert_eq!(
            changed(),
            [
                (String::from("other/light.toml"), Change::Gone),
                (String::from("paper/work/1.args"), Change::Differs),
                (String::from("paper/work/2.args"), Change::New),
            ]
        );
        let words = state().words();
        assert!(words.contains("CHANGED SINCE"), "{words}");
        assert!(words.contains("paper/work/2.args is new"), "{words}");
        let error = register(&experiments, "paper", &paper).unwrap_err();
        assert!(error.to_string().contains("1.args"), "{error}");
    }
}
