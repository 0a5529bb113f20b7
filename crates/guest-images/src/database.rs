//! A disk with MariaDB and a table of rows, for guests whose work is to answer queries (paper 004 §4.1).
//!
//! The server makes its own files, so a guest on the machine itself has it do so (`guests/database-build`), once: the machine is
//! deterministic, and with it the disk is a function of the packages and of the machine's version.

use crate::apt::KERNEL;
use crate::builder::Builder;
use crate::error::{ImagesError, at};
use crate::libraries::{self, GuestFile};
use crate::recipe::{Folder, Site};
use crate::{disk, initrd, modules};
use std::fs;
use std::hash::{DefaultHasher, Hash};
use std::path::Path;

/// The first process of the guest that makes the database.
const BUILD: &str = include_str!("../../../guests/database-build");
/// The packages of the programs.
const PACKAGES: [&str; 3] = ["busybox-static", "mariadb-server-core", "mariadb-client"];
/// The programs.
const PROGRAMS: [&str; 2] = ["usr/sbin/mariadbd", "usr/bin/mariadb"];
/// Further files that the server reads. The folder is that of one package or another.
const TABLES: [&str; 2] = [
    "mariadb_system_tables.sql",
    "mariadb_system_tables_data.sql",
];
const MESSAGES: &str = "english/errmsg.sys";
const SHARED: &str = "usr/share/mysql";
/// The modules that the builder loads.
const MODULES: [&str; 4] = ["virtio_mmio", "virtio_blk", "crc32c_generic", "ext4"];
/// The rows of the table, as many as in the paper.
const ROWS: u32 = 100_000;
/// Form of the disk.
const FORM: disk::Form = disk::Form {
    label: "database",
    size: "512M",
};

/// The folder `database`.
#[derive(Debug)]
pub(super) struct Database;

impl Folder for Database {
    fn name(&self) -> &'static str {
        "database"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (
            (BUILD, PACKAGES, PROGRAMS, TABLES, MESSAGES),
            (MODULES, ROWS, FORM.size),
        )
            .hash(hasher);
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
        let root = work.join("programs");
        apt.unpack_with_dependencies(&PACKAGES, &root, progress)?;

        progress.step("making the disk with the database's programs");
        let content = work.join("content");
        lay_out(&root, &content)?;
        let target = built.join("disk");
        disk::from_folder(&target, &work.join("disk"), &content, FORM)?;
        let modules = modules::collect(&kernel_root, &MODULES)?;
        let builder = work.join("builder");
        let archive = initrd::compose(&root, BUILD, &modules, &[])?;
        fs::write(&builder, archive).map_err(at(&builder))?;
        progress.step("making the database in a guest; this takes some minutes, once");
        let kernel = modules::kernel_image(&kernel_root)?;
        let guest = Builder {
            work,
            kernel: &kernel,
            initrd: &builder,
            disks: &[(&target, true)],
            words: &format!("partita.time={} partita.rows={ROWS}", disk::TIME),
        };
        guest.run(site.run)
    }
}

/// Puts the programs, their libraries and what they read into a folder.
fn lay_out(root: &Path, content: &Path) -> Result<(), ImagesError> {
    let put = |name: &str, source: &Path| {
        let target = content.join(name);
        let folder = target.parent().unwrap_or(content);
        fs::create_dir_all(folder).map_err(at(folder))?;
        fs::copy(source, &target).map_err(at(source)).map(drop)
    };
    for GuestFile { name, source } in libraries::closure(root, &PROGRAMS)? {
        put(&name, &source)?;
    }
    for name in TABLES.into_iter().chain([MESSAGES]) {
        put(&format!("{SHARED}/{name}"), &shared(root, name)?)?;
    }
    let users = content.join("etc/passwd");
    fs::create_dir_all(content.join("etc")).map_err(at(content))?;
    fs::write(&users, "root:x:0:0:root:/:/bin/sh\n").map_err(at(&users))
}

/// Where a file that the server reads is in the packages.
fn shared(root: &Path, name: &str) -> Result<std::path::PathBuf, ImagesError> {
    let folders = [SHARED, "usr/share/mariadb"];
    let mut places = folders.iter().map(|folder| root.join(folder).join(name));
    let found = places.find(|path| path.is_file());
    found.ok_or_else(|| ImagesError::Missing {
        what: format!("the server's file {name}"),
    })
}
