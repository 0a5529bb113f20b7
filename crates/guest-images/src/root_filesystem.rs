//! A Debian system of its own: a root file system with systemd, apt, a login and an SSH server.
//!
//! Packages have scripts of the guests' architecture, which the host cannot run. So they are installed by a guest on the
//! machine itself (`guests/system-build`): the machine is deterministic and the guest takes out what it draws at random, so the
//! file system is a function of the packages and of the machine's version.

use crate::apt::KERNEL;
use crate::builder::Builder;
use crate::error::{ImagesError, at};
use crate::libraries;
use crate::recipe::{Folder, Site};
use crate::{disk, initrd, modules};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The first process of a guest whose disk has a root file system.
const INIT: &str = include_str!("../../../guests/system");
/// The first process of the guest that makes one.
const BUILD: &str = include_str!("../../../guests/system-build");
/// The packages whose programs the two initial RAM disks hold.
const TOOLS: [&str; 4] = ["busybox-static", "dpkg", "tar", "e2fsprogs"];
/// Those programs that the one holds that builds.
const PROGRAMS: [&str; 3] = ["usr/bin/dpkg-deb", "usr/bin/tar", "usr/sbin/mke2fs"];
/// The packages that every package takes for granted (Debian Policy, section 3.8), as apt's pattern.
const ESSENTIAL: &str = "?essential";
/// The system's packages.
const PACKAGES: [&str; 19] = [
    ESSENTIAL,
    "apt",
    "ca-certificates",
    "dbus",
    "debian-archive-keyring",
    "e2fsprogs",
    "iproute2",
    "iputils-ping",
    "kmod",
    "less",
    "libpam-systemd",
    "login",
    "nano",
    "netbase",
    "openssh-server",
    "procps",
    "systemd-resolved",
    "systemd-sysv",
    "udev",
];
/// The modules that a guest loads, and the builder too.
const MODULES: [&str; 8] = [
    "virtio_mmio",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "virtio_balloon",
    "crc32c_generic",
    "ext4",
    "autofs4",
];
/// Files of the system that are in no package, by their path.
const FILES: [(&str, &str); 6] = [
    ("etc/hostname", "debian\n"),
    (
        "etc/hosts",
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    ),
    // The file system takes the size of a disk that was made larger.
    (
        "etc/fstab",
        "/dev/vda / ext4 defaults,x-systemd.growfs 0 0\n",
    ),
    (
        "etc/apt/sources.list.d/debian.sources",
        "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: trixie trixie-updates\nComponents: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n\
         Types: deb\nURIs: http://deb.debian.org/debian-security\nSuites: trixie-security\nComponents: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
    ),
    // A card takes an address from whoever gives some, and else one of its own; guests find each other by NAME.local.
    (
        "etc/systemd/network/80-cards.network",
        "[Match]\nName=e*\n\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=yes\nMulticastDNS=yes\n",
    ),
    // Each copy of the image gets keys of its own.
    (
        "etc/systemd/system/partita-keys.service",
        "[Unit]\nDescription=Keys of this host's SSH server\nBefore=ssh.service ssh.socket\n\
         ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key\n\n\
         [Service]\nType=oneshot\nExecStart=ssh-keygen -q -t ed25519 -N \"\" -f /etc/ssh/ssh_host_ed25519_key\n\n\
         [Install]\nWantedBy=multi-user.target\n",
    ),
];
/// Form of the disk with the packages.
const PACKAGES_DISK: disk::Form = disk::Form {
    label: "packages",
    size: "512M",
};
/// Bytes of the root file system.
const SIZE: u64 = 2 << 30;
/// Size of the blocks in which a file system is copied, in bytes: blocks of zeros are left out.
const BLOCK: usize = 4096;

/// The folder `system`.
#[derive(Debug)]
pub(super) struct Root;

impl Folder for Root {
    fn name(&self) -> &'static str {
        "system"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (INIT, BUILD, TOOLS, PROGRAMS, PACKAGES, MODULES, FILES, SIZE).hash(hasher);
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
        let tools = work.join("tools");
        apt.unpack_with_dependencies(&TOOLS, &tools, progress)?;
        progress.step("fetching the packages of Debian's system");
        let essential = apt.download_with_dependencies(&[ESSENTIAL])?;
        let all = apt.download_with_dependencies(&PACKAGES)?;

        let modules = modules::collect(&kernel_root, &MODULES)?;
        let write = |name: &str, bytes: &[u8]| {
            let path = built.join(name);
            fs::write(&path, bytes).map_err(at(&path))
        };
        write("initrd", &initrd::compose(&tools, INIT, &modules, &[])?)?;
        let programs = libraries::closure(&tools, &PROGRAMS)?;
        let builder = work.join("builder");
        let archive = initrd::compose(&tools, BUILD, &modules, &programs)?;
        fs::write(&builder, archive).map_err(at(&builder))?;

        progress.step("making the disk with the packages");
        let source = work.join("packages.disk");
        let content = work.join("packages");
        lay_out(&content, &essential, &all)?;
        disk::from_folder(&source, &work.join("disk"), &content, PACKAGES_DISK)?;
        let target = built.join("disk");
        let image = File::create(&target).map_err(at(&target))?;
        image.set_len(SIZE).map_err(at(&target))?;
        drop(image);

        progress.step("installing Debian in a guest; this takes some minutes, once");
        let kernel = modules::kernel_image(&kernel_root)?;
        let guest = Builder {
            work,
            kernel: &kernel,
            initrd: &builder,
            disks: &[(&source, false), (&target, true)],
            words: &format!(
                "partita.time={} partita.identity={}",
                disk::TIME,
                disk::identity("debian")
            ),
        };
        guest.run(site.run)
    }
}

/// Puts what the guest reads that builds into a folder.
fn lay_out(content: &Path, essential: &[PathBuf], all: &[PathBuf]) -> Result<(), ImagesError> {
    fs::create_dir_all(content).map_err(at(content))?;
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    for package in all {
        let target = content.join(name(package));
        fs::copy(package, &target).map_err(at(&target))?;
    }
    let list: String = essential.iter().map(|path| name(path) + "\n").collect();
    let path = content.join("essential");
    fs::write(&path, list).map_err(at(&path))?;
    for (name, text) in FILES {
        let path = content.join("files").join(name);
        let folder = path.parent().unwrap_or(content);
        fs::create_dir_all(folder).map_err(at(folder))?;
        fs::write(&path, text).map_err(at(&path))?;
    }
    Ok(())
}

/// Copies a file system into a new file of `size` bytes, or of its own size if that is more, and leaves holes where it is
/// empty.
///
/// # Errors
/// The new file is there already, or one of the two cannot be read or written.
pub fn copy(from: &Path, to: &Path, size: u64) -> Result<(), ImagesError> {
    let target = File::create_new(to).map_err(at(to))?;
    pour(from, &target, to, 0, size)
}

/// Copies what is not empty to `begin` of a file that ends there, and makes it at least so many bytes long.
fn pour(from: &Path, target: &File, to: &Path, begin: u64, size: u64) -> Result<(), ImagesError> {
    let source = File::open(from).map_err(at(from))?;
    let length = source.metadata().map_err(at(from))?.len();
    target.set_len((begin + length).max(size)).map_err(at(to))?;
    let mut block = vec![0; BLOCK];
    let mut offset = 0;
    while offset < length {
        let rest = usize::try_from(length - offset).unwrap_or(BLOCK);
        let part = block.get_mut(..rest.min(BLOCK)).unwrap_or_default();
        source.read_exact_at(part, offset).map_err(at(from))?;
        if part.iter().any(|byte| *byte != 0) {
            target.write_all_at(part, begin + offset).map_err(at(to))?;
        }
        offset += part.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn copy_keeps_bytes_size_and_holes() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let image = File::create(&from).unwrap();
        image.set_len(8 << 20).unwrap();
        image.write_all_at(b"begin", 0).unwrap();
        image.write_all_at(b"end", (8 << 20) - 3).unwrap();
        copy(&from, &to, 16 << 20).unwrap();
        let copied = fs::read(&to).unwrap();
        assert_eq!(copied.len(), 16 << 20);
        assert!(copied[..8 << 20] == fs::read(&from).unwrap()[..]);
        assert!(copied[8 << 20..].iter().all(|byte| *byte == 0));
        assert!(fs::metadata(&to).unwrap().blocks() * 512 < 1 << 20);
        // What is there is somebody's.
        assert!(copy(&from, &to, 0).is_err());
        fs::remove_file(&to).unwrap();
        copy(&from, &to, 1).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().len(), 8 << 20);
    }
}
