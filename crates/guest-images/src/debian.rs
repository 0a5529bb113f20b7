//! The folder `debian`: kernel, initial RAM disk and disk of a Debian guest.

use crate::apt::KERNEL;
use crate::error::{ImagesError, at};
use crate::recipe::{Folder, Site};
use crate::{disk, initrd, libraries, modules};
use std::fs;
use std::hash::{DefaultHasher, Hash};

/// The guests' first process.
pub const INIT: &str = include_str!("../../../guests/init");

/// The packages of the programs.
const PACKAGES: [&str; 5] = [
    "busybox-static",
    "coreutils",
    "rt-tests",
    "fio",
    "stress-ng",
];
/// The programs that the disk holds.
const PROGRAMS: [&str; 4] = [
    "usr/bin/hackbench",
    "usr/bin/fio",
    "usr/bin/sort",
    "usr/bin/stress-ng",
];
/// Those of them that the initial RAM disk holds too, for guests without a disk.
const SMALL_PROGRAMS: [&str; 1] = ["usr/bin/hackbench"];
/// The modules that a guest may load.
const MODULES: [&str; 7] = [
    "virtio_mmio",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "virtio_balloon",
    "crc32c_generic",
    "ext4",
];

/// The folder `debian`: what every guest boots.
#[derive(Debug)]
pub(crate) struct Guests;

impl Folder for Guests {
    fn name(&self) -> &'static str {
        "debian"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (INIT, PACKAGES, PROGRAMS, SMALL_PROGRAMS, MODULES).hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let Site {
            work,
            built,
            progress,
            ..
        } = site;
        let apt = site.apt()?;
        let kernel_root = work.join("kernel");
        apt.unpack_kernel(KERNEL, &kernel_root, progress)?;
        let program_root = work.join("programs");
        apt.unpack_with_dependencies(&PACKAGES, &program_root, progress)?;

        progress.step("picking the kernel and its modules");
        let kernel_image = modules::kernel_image(&kernel_root)?;
        let target = built.join("kernel");
        fs::copy(&kernel_image, &target).map_err(at(&target))?;
        let modules = modules::collect(&kernel_root, &MODULES)?;

        progress.step("making the initial RAM disk");
        let small = libraries::closure(&program_root, &SMALL_PROGRAMS)?;
        let archive = initrd::compose(&program_root, INIT, &modules, &small)?;
        let target = built.join("initrd");
        fs::write(&target, archive).map_err(at(&target))?;

        progress.step("making the disk image");
        let programs = libraries::closure(&program_root, &PROGRAMS)?;
        disk::make(&built.join("disk"), &work.join("disk"), &programs)
    }
}
