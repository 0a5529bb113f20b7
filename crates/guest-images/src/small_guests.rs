//! Initial RAM disks of guests that need no disk: a first process and a few of Debian's programs.

use crate::error::{ImagesError, at};
use crate::recipe::{Folder, Site};
use crate::{initrd, libraries};
use std::fs;
use std::hash::{DefaultHasher, Hash};

/// A folder with one initial RAM disk.
#[derive(Debug)]
pub(super) struct SmallGuest {
    name: &'static str,
    /// The guest's first process.
    init: &'static str,
    packages: &'static [&'static str],
    /// The programs that are taken from the packages, with the libraries that they link.
    programs: &'static [&'static str],
}

/// The folder `perf`: Debian's perf, for a guest that measures itself.
pub(super) const PERF: SmallGuest = SmallGuest {
    name: "perf",
    init: include_str!("../../../guests/perf"),
    packages: &["busybox-static", "linux-perf", "rt-tests"],
    programs: &["usr/bin/perf", "usr/bin/hackbench"],
};

/// The folder `vectors`: OpenSSL, for a guest whose work is vector code with results that scalar code checks.
pub(super) const VECTORS: SmallGuest = SmallGuest {
    name: "vectors",
    init: include_str!("../../../guests/vectors"),
    packages: &["busybox-static", "openssl"],
    programs: &["usr/bin/openssl"],
};

impl Folder for SmallGuest {
    fn name(&self) -> &'static str {
        self.name
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (self.init, self.packages, self.programs).hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let root = site.unpack(self.packages)?;
        let step = format!("making the initial RAM disk of `{}`", self.name);
        site.progress.step(&step);
        let files = libraries::closure(&root, self.programs)?;
        let archive = initrd::compose(&root, self.init, &[], &files)?;
        let target = site.built.join("initrd");
        fs::write(&target, archive).map_err(at(&target))
    }
}
