//! A disk from which a guest's firmware boots: EFI's system partition with systemd-boot, its menu, and the kernel and the initial RAM disk
//! of the Debian guest.

use crate::debian::Guests;
use crate::error::{ImagesError, at};
use crate::fat;
use crate::recipe::{Folder, Site};
use std::fs;
use std::hash::{DefaultHasher, Hash};

/// Package of the boot manager, its program there, and where EFI looks for it (UEFI 2.10, §3.5.1.1).
const PACKAGE: &str = "systemd-boot-efi";
const PROGRAM: &str = "usr/lib/systemd/boot/efi/systemd-bootriscv64.efi";
const BOOT_PROGRAM: &str = "EFI/BOOT/BOOTRISCV64.EFI";
/// Files of the menu (Boot Loader Specification, type 1). The second is chosen in it by its name's key.
const MENU: [(&str, &str); 3] = [
    ("loader/loader.conf", "timeout 2\ndefault debian.conf\n"),
    (
        "loader/entries/debian.conf",
        "title Debian\nsort-key 1\nlinux /debian/kernel\ninitrd /debian/initrd\noptions console=ttyS0\n",
    ),
    (
        "loader/entries/shell.conf",
        "title Debian with a shell\nsort-key 2\nlinux /debian/kernel\ninitrd /debian/initrd\n\
         options console=ttyS0 quiet partita.workload=shell\n",
    ),
];
/// Files of the folder `debian`.
const PARTS: [&str; 2] = ["kernel", "initrd"];

/// The folder `efi`.
#[derive(Debug)]
pub(super) struct Efi;

impl Folder for Efi {
    fn name(&self) -> &'static str {
        "efi"
    }

    fn needs(&self) -> &'static [&'static dyn Folder] {
        &[&Guests]
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (PACKAGE, PROGRAM, MENU, PARTS).hash(hasher);
        Guests.hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let package = site.apt()?.download(PACKAGE)?;
        let root = site.work.join("root");
        crate::apt::unpack(&package, &root)?;
        site.progress.step("making the disk with systemd-boot");
        let read = |path: std::path::PathBuf| fs::read(&path).map_err(at(&path));
        let mut files = vec![(String::from(BOOT_PROGRAM), read(root.join(PROGRAM))?)];
        for (name, text) in MENU {
            files.push((String::from(name), text.into()));
        }
        for part in PARTS {
            let source = site.folders.join(Guests.name()).join(part);
            files.push((format!("debian/{part}"), read(source)?));
        }
        let files: Vec<fat::File<'_>> = files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        let target = site.built.join("disk");
        let disk = fat::disk(&files).map_err(at(&target))?;
        fs::write(&target, disk).map_err(at(&target))
    }
}
