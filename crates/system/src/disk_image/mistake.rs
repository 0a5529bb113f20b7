//! Mistakes of images, each with the file that has it.

use std::path::{Path, PathBuf};

/// Mistake of a disk's image.
#[derive(Debug, thiserror::Error)]
pub enum ImageMistake {
    /// A file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A file is broken, or refers to what is not read.
    #[error("{path}: {what}", path = path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Cause.
        what: String,
    },
}

/// Names the file of an error.
pub(super) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> ImageMistake {
    |error| ImageMistake::File {
        path: path.to_owned(),
        error,
    }
}
