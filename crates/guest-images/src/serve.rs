//! The folder `serve`: an initial RAM disk of a guest that serves disks to other VMs.

use crate::apt::KERNEL;
use crate::debian::Guests;
use crate::error::{ImagesError, at};
use crate::libraries::GuestFile;
use crate::recipe::{Folder, Site};
use crate::{initrd, modules};
use std::fs;
use std::hash::{DefaultHasher, Hash};
use std::path::PathBuf;
use system::installed;

/// The guest's first process.
const INIT: &str = include_str!("../../../guests/serve");
/// The packages of its programs.
const PACKAGES: [&str; 1] = ["busybox-static"];
/// The modules that it loads.
const MODULES: [&str; 6] = [
    "virtio_mmio",
    "virtio_blk",
    "nvme",
    "ahci",
    "sd_mod",
    "uio_pci_generic",
];
/// The program that serves, and one that lies, for tests.
const PROGRAMS: [&str; 2] = ["partita-serve", "partita-serve-hostile"];
/// Folder of the programs in the guest.
const FOLDER: &str = "usr/bin";

/// The folder.
#[derive(Debug)]
pub(crate) struct Serve;

fn programs() -> [PathBuf; 2] {
    let command = installed::command();
    PROGRAMS.map(|name| installed::program(&command, name))
}

impl Folder for Serve {
    fn name(&self) -> &'static str {
        "serve"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        // A program that was built anew wants a new image.
        let programs = programs().map(|path| fs::read(path).unwrap_or_default());
        (INIT, PACKAGES, MODULES, programs).hash(hasher);
    }

    fn needs(&self) -> &'static [&'static dyn Folder] {
        &[&Guests]
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let programs = programs();
        if let Some(path) = programs.iter().find(|path| !path.is_file()) {
            let what = format!("{}, which 'make build' builds;", path.display());
            return Err(ImagesError::Missing { what });
        }
        let kernel_root = site.work.join("kernel");
        site.apt()?
            .unpack_kernel(KERNEL, &kernel_root, site.progress)?;
        let kernel = site.folders.join("debian/kernel");
        modules::check_kernel(&kernel_root, &kernel, "serve")?;
        let root = site.unpack(&PACKAGES)?;
        site.progress.step("making the initial RAM disk of `serve`");
        let modules = modules::collect(&kernel_root, &MODULES)?;
        let files: Vec<GuestFile> = PROGRAMS
            .iter()
            .zip(programs)
            .map(|(name, source)| GuestFile {
                name: format!("{FOLDER}/{name}"),
                source,
            })
            .collect();
        let archive = initrd::compose(&root, INIT, &modules, &files)?;
        let target = site.built.join("initrd");
        fs::write(&target, archive).map_err(at(&target))
    }
}
