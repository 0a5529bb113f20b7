//! How a folder of the cache is built, and what the building has at hand.

use crate::apt::Apt;
use crate::error::ImagesError;
use crate::progress::Progress;
use std::cell::OnceCell;
use std::hash::DefaultHasher;
use std::path::{Path, PathBuf};
use system::System;
use system::cache::Cache;

/// Runs the first VM of a system alone to its power-off and hands each line of its console on. Packages have scripts of the guests'
/// architecture, so some images are made by a guest; how one is run is not known here.
///
/// The error is for people.
pub type RunGuest = fn(&System, &Cache, &mut dyn FnMut(&str)) -> Result<(), String>;

/// A folder of the cache that is built as a whole.
pub(crate) trait Folder: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Hashes the inputs of the build, apart from the packages: a change of them wants a new folder.
    fn hash(&self, hasher: &mut DefaultHasher);

    /// The folders whose files it is made of.
    fn needs(&self) -> &'static [&'static dyn Folder] {
        &[]
    }

    /// Builds everything.
    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError>;
}

/// Where a folder is built.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    /// The folders that are built.
    pub(crate) folders: &'a Path,
    /// Folder of fetched packages.
    pub(crate) packages: &'a Path,
    /// Takes what is needed on the way.
    pub(crate) work: &'a Path,
    /// Takes the files; it is there and empty.
    pub(crate) built: &'a Path,
    pub(crate) progress: &'a Progress,
    /// Runs a guest that makes a disk.
    pub(crate) run: RunGuest,
    pub(crate) apt: OnceCell<Apt>,
}

impl Site<'_> {
    /// Apt with a list of packages that is up to date.
    pub(crate) fn apt(&self) -> Result<&Apt, ImagesError> {
        if let Some(apt) = self.apt.get() {
            return Ok(apt);
        }
        let apt = Apt::up_to_date(self.packages, self.progress)?;
        Ok(self.apt.get_or_init(|| apt))
    }

    /// Unpacks packages with all that they depend on; the folder in which their files lie then.
    pub(crate) fn unpack(&self, names: &[&str]) -> Result<PathBuf, ImagesError> {
        let root = self.work.join("root");
        let progress = self.progress;
        self.apt()?
            .unpack_with_dependencies(names, &root, progress)?;
        Ok(root)
    }
}
