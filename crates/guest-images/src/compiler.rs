//! A disk with Debian's C compiler, for guests whose work is to compile, link and run programs.

use crate::disk;
use crate::error::{ImagesError, at};
use crate::recipe::{Folder, Site};
use std::fs;
use std::hash::{DefaultHasher, Hash};

/// The packages: the compiler with what it needs to link.
const PACKAGES: [&str; 2] = ["gcc", "libc6-dev"];
/// Folders that are of no use to a compiler.
const LEFT_OUT: [&str; 4] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
];
/// Form of the disk.
const FORM: disk::Form = disk::Form {
    label: "compiler",
    size: "512M",
};

/// The folder `compiler`.
#[derive(Debug)]
pub(super) struct Compiler;

impl Folder for Compiler {
    fn name(&self) -> &'static str {
        "compiler"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (PACKAGES, LEFT_OUT, FORM.size).hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let root = site.unpack(&PACKAGES)?;
        for folder in LEFT_OUT {
            let path = root.join(folder);
            if path.exists() {
                fs::remove_dir_all(&path).map_err(at(&path))?;
            }
        }
        site.progress.step("making the compiler's disk image");
        let image = site.built.join("disk");
        disk::from_folder(&image, &site.work.join("disk"), &root, FORM)
    }
}
