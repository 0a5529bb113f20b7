//! An initial RAM disk with Debian's perf, for a guest that measures itself.

use crate::error::{ImagesError, at};
use crate::recipe::{Folder, Site};
use crate::{initrd, libraries};
use std::fs;
use std::hash::{DefaultHasher, Hash};

/// The guest's first process.
const INIT: &str = include_str!("../../../guests/perf");
/// The packages.
const PACKAGES: [&str; 3] = ["busybox-static", "linux-perf", "rt-tests"];
/// The programs that are taken from them, with the libraries that they link.
const PROGRAMS: [&str; 2] = ["usr/bin/perf", "usr/bin/hackbench"];

/// The folder `perf`.
#[derive(Debug)]
pub(super) struct Perf;

impl Folder for Perf {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (INIT, PACKAGES, PROGRAMS).hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let root = site.unpack(&PACKAGES)?;
        site.progress.step("making perf's initial RAM disk");
        let files = libraries::closure(&root, &PROGRAMS)?;
        let archive = initrd::compose(&root, INIT, &[], &files)?;
        let target = site.built.join("initrd");
        fs::write(&target, archive).map_err(at(&target))
    }
}
