//! Errors of running another implementation.

use std::path::PathBuf;

/// Why another implementation gave no result.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// It is not there.
    #[error("{program} cannot be started: {error}; is it installed and on PATH?")]
    Start {
        /// Program that was to be started.
        program: &'static str,
        /// Why it was not.
        error: std::io::Error,
    },
    /// A file of the conversation cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It did not come to the end in time.
    #[error("{0} did not end within {1} s")]
    Endless(&'static str, u64),
    /// It ended, but said something else than a result.
    #[error("{0} gave no result: {1}")]
    NoResult(&'static str, String),
}
