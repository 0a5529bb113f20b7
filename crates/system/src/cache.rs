//! Where what was fetched and built is kept: outside of every source tree.

use std::path::{Path, PathBuf};

/// The firmware that a system file names `image:u-boot`.
pub const U_BOOT: &str = "u-boot/firmware";

/// The files that `partita images` builds, by their path in the cache.
pub const BUILT_FILES: [&str; 14] = [
    "debian/kernel",
    "debian/initrd",
    "debian/disk",
    "board/disk",
    "compiler/disk",
    "database/disk",
    "efi/disk",
    "pci/initrd",
    "perf/initrd",
    "serve/initrd",
    "system/disk",
    "system/initrd",
    U_BOOT,
    "vectors/initrd",
];

/// The cache's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// There is no place for a cache.
#[derive(Debug, thiserror::Error)]
pub enum NoCache {
    /// No variable names one.
    #[error("there is no place for the cache: set PARTITA_CACHE, XDG_CACHE_HOME or HOME")]
    Unset,
    /// The folder is not there and cannot be made.
    #[error(
        "{path}: {error}; images and results are kept in this folder: make it, let this user write to it, or name another folder by \
         PARTITA_CACHE",
        path = path.display()
    )]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
}

impl Cache {
    /// The cache in this folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// `$PARTITA_CACHE`, else `$XDG_CACHE_HOME/partita`, else `$HOME/.cache/partita`.
    ///
    /// # Errors
    /// None of these variables is set.
    pub fn from_environment() -> Result<Self, NoCache> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let variable = |name| variable(name).map(PathBuf::from);
        variable("PARTITA_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("partita")))
            .or_else(|| variable("HOME").map(|folder| folder.join(".cache/partita")))
            .map(Self::new)
            .ok_or(NoCache::Unset)
    }

    /// As [`Cache::from_environment`], with its folder made if it is not there.
    ///
    /// # Errors
    /// None of these variables is set, or the folder cannot be made.
    pub fn made() -> Result<Self, NoCache> {
        let cache = Self::from_environment()?;
        let path = cache.folder.clone();
        match std::fs::create_dir_all(&path) {
            Ok(()) => Ok(cache),
            Err(error) => Err(NoCache::Unusable { path, error }),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a file that `partita images` builds is to be, `None` if it builds no such file.
    pub fn built(&self, name: &str) -> Option<PathBuf> {
        BUILT_FILES.contains(&name).then(|| self.folder.join(name))
    }
}
