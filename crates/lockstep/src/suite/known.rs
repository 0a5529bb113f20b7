//! Programs that are expected to fail, each with a reason.

use std::path::{Path, PathBuf};

/// Why a list of known failures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KnownError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A line has no reason.
    #[error("{path}:{line}: `{text}`: write a program's name, a colon and why it fails")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// Text of the entry.
        text: String,
    },
}

/// Programs that are expected to fail. A `*` at the end of a name stands for anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    entries: Vec<(String, String)>,
}

impl Known {
    /// Reads a list: a line each, `name: reason`; empty lines and lines that begin with # are
    /// skipped.
    ///
    /// # Errors
    /// [`KnownError`] for a file that cannot be read or a line without a reason.
    pub fn read(path: &Path) -> Result<Self, KnownError> {
        let text = std::fs::read_to_string(path).map_err(|error| KnownError::Read {
            path: path.to_owned(),
            error,
        })?;
        let mut entries = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match text.split_once(": ") {
                Some((name, reason)) if !reason.trim().is_empty() => {
                    entries.push((name.trim().to_owned(), reason.trim().to_owned()));
                }
                _ => {
                    return Err(KnownError::Line {
                        path: path.to_owned(),
                        line: index + 1,
                        text: text.to_owned(),
                    });
                }
            }
        }
        Ok(Self { entries })
    }

    /// Why a program is expected to fail, if it is.
    #[must_use]
    pub fn expected_failure(&self, name: &str) -> Option<&str> {
        let matches = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        self.entries
            .iter()
            .find(|(pattern, _)| matches(pattern))
            .map(|(_, reason)| reason.as_str())
    }
}
