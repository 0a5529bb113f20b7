//! The host on which KVM is measured: Debian's own kernel with its kvm module, and Debian's own QEMU for riscv64.
//!
//! What it boots from is built once and kept in the cache; the guest's files are added for each run, because the
//! guest is the same as on the other two.

use crate::apt::{Apt, KERNEL};
use crate::error::{ImagesError, at};
use crate::progress::Progress;
use crate::site::{self, WorkFolder};
use crate::{initrd, libraries, modules, pinned};
use std::fs;
use std::path::PathBuf;
use system::cache::Cache;

/// The host's first process.
const INIT: &str = include_str!("../../../guests/kvm-host");
/// Name of its folder in the cache.
const FOLDER: &str = "kvm";
/// The packages of its programs.
const PACKAGES: [&str; 2] = ["busybox-static", "qemu-system-riscv"];
/// Its program.
const PROGRAMS: [&str; 1] = ["usr/bin/qemu-system-riscv64"];
/// The modules that it loads.
const MODULES: [&str; 3] = ["virtio_mmio", "virtio_blk", "kvm"];

/// Where the host's initial RAM disk lies once [`ensure`] has built it.
pub fn initrd(cache: &Cache) -> PathBuf {
    cache.folder().join(FOLDER).join("initrd")
}

/// The host's initial RAM disk without a guest, built unless it is there. The images of `partita images` must be.
///
/// # Errors
/// As for those.
pub fn ensure(cache: &Cache, progress: &Progress) -> Result<PathBuf, ImagesError> {
    let target = initrd(cache);
    let folder = cache.folder().join(FOLDER);
    let kernel = cache.folder().join("debian/kernel");
    let size = fs::metadata(&kernel).map_err(at(&kernel))?.len();
    let stamp = format!("{size} {PACKAGES:?} {PROGRAMS:?} {MODULES:?}\n{INIT}");
    let stamp_file = folder.join("stamp");
    let is_built = || {
        let text = fs::read_to_string(&stamp_file);
        text.is_ok_and(|text| text == stamp) && target.is_file()
    };
    if is_built() {
        return Ok(target);
    }
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let _alone = site::alone(cache, progress)?;
    if is_built() {
        return Ok(target);
    }
    let work = WorkFolder::new(cache.folder())?;

    let apt = Apt::up_to_date(&cache.folder().join("packages"), progress)?;
    let kernel_root = work.path().join("kernel");
    apt.unpack_kernel(KERNEL, &kernel_root, progress)?;
    let program_root = work.path().join("programs");
    apt.unpack_with_dependencies(&PACKAGES, &program_root, progress)?;
    modules::check_kernel(&kernel_root, &kernel, "kvm")?;
    progress.step("making the initial RAM disk of KVM's host");
    let modules = modules::collect(&kernel_root, &MODULES)?;
    let programs = libraries::closure(&program_root, &PROGRAMS)?;
    let archive = initrd::compose(&program_root, INIT, &modules, &programs)?;
    fs::write(&target, archive).map_err(at(&target))?;
    let list = folder.join(pinned::FILE);
    fs::write(&list, pinned::text(&apt.used())).map_err(at(&list))?;
    fs::write(&stamp_file, stamp).map_err(at(&stamp_file))?;
    Ok(target)
}
