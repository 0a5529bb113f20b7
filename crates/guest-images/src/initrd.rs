//! The guests' initial RAM disk.

use crate::error::{ImagesError, at};
use crate::libraries::GuestFile;
use crate::modules::Module;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use system::image::archive::Writer;

/// Where busybox is, in its package and in the guest.
const BUSYBOX: [&str; 2] = ["usr/bin/busybox", "bin/busybox"];

/// Makes the archive: busybox, `init`, the modules with the order in which each is loaded after others, and files of programs.
/// It is not packed: a guest would spend instructions on unpacking that nobody asked for.
///
/// # Errors
/// A file cannot be read.
pub fn compose(
    root: &Path,
    init: &str,
    modules: &[Module],
    files: &[GuestFile],
) -> Result<Vec<u8>, ImagesError> {
    let busybox = BUSYBOX
        .iter()
        .map(|name| root.join(name))
        .find(|path| path.is_file());
    let busybox = busybox.ok_or_else(|| ImagesError::Missing {
        what: String::from("busybox"),
    })?;

    let mut archive = Writer::new();
    for folder in ["bin", "dev", "modules", "proc", "sys", "usr"] {
        archive.folder(folder)?;
    }
    archive.link("lib", "usr/lib")?;
    archive.file("init", 0o755, init.as_bytes())?;
    archive.file(
        "bin/busybox",
        0o755,
        &fs::read(&busybox).map_err(at(&busybox))?,
    )?;
    for Module { name, data, order } in modules {
        archive.file(&format!("modules/{name}.ko"), 0o644, data)?;
        let order: String = order.iter().map(|name| format!("{name}\n")).collect();
        archive.file(&format!("modules/{name}.order"), 0o644, order.as_bytes())?;
    }
    let mut folders = BTreeSet::from([String::from("usr")]);
    for GuestFile { name, source } in files {
        for folder in Path::new(name)
            .ancestors()
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            let folder = folder.display().to_string();
            if !folder.is_empty() && folders.insert(folder.clone()) {
                archive.folder(&folder)?;
            }
        }
        archive.file(name, 0o755, &fs::read(source).map_err(at(source))?)?;
    }
    Ok(archive.finish())
}
