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
/// The program that serves, where it was built and in the guest.
const PROGRAM: &str = "partita-serve";
const IN_GUEST: &str = "usr/bin/partita-serve";

/// The folder.
#[derive(Debug)]
pub(crate) struct Serve;

fn program() -> PathBuf {
    installed::program(&installed::command(), PROGRAM)
}

impl Folder for Serve {
    fn name(&self) -> &'static str {
        "serve"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        // A program that was built anew wants a new image.
        let program = fs::read(program()).unwrap_or_default();
        (INIT, PACKAGES, MODULES, program).hash(hasher);
    }

    fn needs(&self) -> &'static [&'static dyn Folder] {
        &[&Guests]
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let source = program();
        if !source.is_file() {
            return Err(ImagesError::Missing {
                what: format!(
                    "{}, which `make build` builds; the program {PROGRAM}",
                    source.display()
                ),
            });
        }
        let kernel_root = site.work.join("kernel");
        site.apt()?
            .unpack_kernel(KERNEL, &kernel_root, site.progress)?;
        let kernel = site.folders.join("debian/kernel");
        modules::check_kernel(&kernel_root, &kernel, "serve")?;
        let root = site.unpack(&PACKAGES)?;
        site.progress.step("making the initial RAM disk of `serve`");
        let modules = modules::collect(&kernel_root, &MODULES)?;
        let program = GuestFile {
            name: String::from(IN_GUEST),
            source,
        };
        let archive = initrd::compose(&root, INIT, &modules, &[program])?;
        let target = site.built.join("initrd");
        fs::write(&target, archive).map_err(at(&target))
    }
}
