//! The folder `pci`: an initial RAM disk of a guest that drives devices behind a host bridge of PCI.

use crate::apt::KERNEL;
use crate::debian::Guests;
use crate::error::{ImagesError, at};
use crate::recipe::{Folder, Site};
use crate::{initrd, modules};
use std::fs;
use std::hash::{DefaultHasher, Hash};

/// The guest's first process.
const INIT: &str = include_str!("../../../guests/pci");
/// The packages of its programs; the others are on the disk.
const PACKAGES: [&str; 1] = ["busybox-static"];
/// The modules that it loads. The drivers of the bridge and of virtio's transport over PCI are in the kernel.
const MODULES: [&str; 8] = [
    "nvme",
    "virtio_mmio",
    "virtio_blk",
    "ahci",
    "sd_mod",
    "e1000e",
    "crc32c_generic",
    "ext4",
];

/// The folder.
#[derive(Debug)]
pub(crate) struct Pci;

impl Folder for Pci {
    fn name(&self) -> &'static str {
        "pci"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (INIT, PACKAGES, MODULES).hash(hasher);
    }

    fn needs(&self) -> &'static [&'static dyn Folder] {
        &[&Guests]
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let kernel_root = site.work.join("kernel");
        site.apt()?
            .unpack_kernel(KERNEL, &kernel_root, site.progress)?;
        let kernel = site.folders.join("debian/kernel");
        modules::check_kernel(&kernel_root, &kernel, "pci")?;
        let root = site.unpack(&PACKAGES)?;
        site.progress.step("making the initial RAM disk of `pci`");
        let modules = modules::collect(&kernel_root, &MODULES)?;
        let archive = initrd::compose(&root, INIT, &modules, &[])?;
        let target = site.built.join("initrd");
        fs::write(&target, archive).map_err(at(&target))
    }
}
