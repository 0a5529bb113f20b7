//! Why images cannot be built.

use std::path::{Path, PathBuf};

/// Why the images could not be built.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// A file or folder.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// Nothing can be written to the cache.
    #[error(
        "{path}: {error}; images are built in this folder: let this user write to it, or name another folder by PARTITA_CACHE",
        path = path.display()
    )]
    Cache {
        /// Its folder.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// A disk's image.
    #[error(transparent)]
    Image(#[from] system::disk_image::ImageMistake),
    /// A program could not be started.
    #[error("{program} cannot be started ({error}); on Debian the package {package} has it")]
    Program {
        /// Which.
        program: &'static str,
        /// The problem.
        error: std::io::Error,
        /// The package that has it.
        package: &'static str,
    },
    /// A program failed.
    #[error("{program} failed ({status}):\n{output}")]
    Failed {
        /// Which.
        program: String,
        /// How.
        status: std::process::ExitStatus,
        /// The end of what it said.
        output: String,
    },
    /// Apt knows no source of Debian packages.
    #[error(
        "apt on this machine knows no source of Debian packages; add Debian's archive to /etc/apt/sources.list.d, \
         or set PARTITA_DEBIAN_MIRROR to the URI of a mirror"
    )]
    NoMirror,
    /// The variable names a mirror by no URI that apt can fetch from.
    #[error(
        "PARTITA_DEBIAN_MIRROR: {0:?} is no URI of a mirror; write one such as https://mirror.example/debian or file:/media/debian"
    )]
    NotMirror(String),
    /// The mirror cannot be reached.
    #[error(
        "{mirror} cannot be reached: {reason}\nThe images are built once, of Debian's packages. Connect this computer to the network, set \
         PARTITA_DEBIAN_MIRROR to the URI of a mirror that it reaches, or copy the cache (~/.cache/partita) from a computer on which \
         `partita images` was run"
    )]
    NoNetwork {
        /// URI of the mirror.
        mirror: String,
        /// Apt's own line.
        reason: String,
    },
    /// Debian's keys are not there.
    #[error(
        "{0} is missing, with which signatures are checked; install the package debian-archive-keyring"
    )]
    NoKeyring(&'static str),
    /// A package lacks what it should have.
    #[error("{what} is not in the packages that were fetched")]
    Missing {
        /// The missing item.
        what: String,
    },
    /// A file of a package cannot be understood.
    #[error("{path}: {problem}", path = path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The guest that installs packages has not come to its end.
    #[error("the guest that makes a disk failed: {reason}")]
    Install {
        /// Its last lines.
        reason: String,
    },
    /// The initial RAM disk.
    #[error(transparent)]
    Archive(#[from] system::image::archive::TooLarge),
}

/// Turns an error of the file system into one that names the file.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> ImagesError + '_ {
    move |error| ImagesError::File {
        path: path.to_owned(),
        error,
    }
}

/// Entries of a folder, in the order of the names: the host lists it in any.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>, ImagesError> {
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    let paths = entries.map(|entry| Ok(entry.map_err(at(folder))?.path()));
    let mut paths = paths.collect::<Result<Vec<_>, ImagesError>>()?;
    paths.sort();
    Ok(paths)
}
