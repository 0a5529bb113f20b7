//! `partita images`.

use super::failure::{Failure, at};
use super::output;
use guest_images::{Progress, pinned};
use std::path::Path;
use system::Bytes;
use system::cache::{BUILT_FILES, Cache};
use system::fingerprint::Fingerprints;

/// The Debian system in the cache, of which users get copies.
const SYSTEM: [&str; 2] = ["system/disk", "system/initrd"];

/// A size on the command line.
pub(super) fn size(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text)
        .filter(|size| size.0.is_multiple_of(1 << 20))
        .ok_or_else(|| format!("not a whole number of MiB or GiB, with the unit: {text}"))
}

pub(super) fn execute(
    rebuild: bool,
    all: bool,
    rootfs: Option<&Path>,
    size: Option<Bytes>,
    packages: Option<&Path>,
) -> Result<(), Failure> {
    output::check([packages.map(Path::to_owned).as_ref()])?;
    let cache = Cache::made()?;
    if rebuild {
        guest_images::forget(&cache)?;
    }
    if let Some(path) = rootfs {
        return root_file_system(&cache, path, size);
    }
    let names: Vec<&str> = BUILT_FILES
        .into_iter()
        .filter(|name| all || name.starts_with("debian/"))
        .collect();
    let built = runner::images::ensure(&cache, &names, &Progress::new())?;
    let mut known = Fingerprints::new();
    for &name in &names {
        let path = cache.folder().join(name);
        let size = std::fs::metadata(&path).map_err(at(&path))?.len() >> 20;
        let fingerprint = known.of(&path).map_err(at(&path))?;
        output::say_line(format_args!(
            "{name}: {} ({size} MiB, SHA-256 {})",
            path.display(),
            fingerprint.short()
        ));
    }
    let (used, unknown) = guest_images::packages(&cache, &names);
    if let Some(path) = packages {
        output::write(path, pinned::text(&used).as_bytes())?;
    }
    if !used.is_empty() {
        output::say_line(format_args!(
            "{}",
            pinned::comparison(&used, &pinned::wanted())
        ));
    }
    if !unknown.is_empty() {
        output::say_line(format_args!(
            "packages of {}: not known, as they were built before that was kept; 'partita images --rebuild' builds them anew",
            unknown.join(", ")
        ));
    }
    output::say_line(format_args!(
        "{}",
        if built { "built" } else { "there already" }
    ));
    Ok(())
}

/// Writes a copy of the Debian system, and says what to do with it.
fn root_file_system(cache: &Cache, path: &Path, size: Option<Bytes>) -> Result<(), Failure> {
    if path.exists() {
        let error = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(at(path)(error));
    }
    runner::images::ensure(cache, &SYSTEM, &Progress::new())?;
    let from = cache.folder().join("system/disk");
    guest_images::root_filesystem::copy(&from, path, size.map_or(0, |size| size.0))?;
    let bytes = std::fs::metadata(path).map_err(at(path))?.len();
    let mut known = Fingerprints::new();
    output::say_line(format_args!(
        "{}: Debian's root file system, {} MiB, from the image with SHA-256 {}\n\
         In a system: initrd = \"image:system/initrd\" and disks = [{{ file = \"{}\", persistent = true }}]; the login is root, \
         without a password",
        path.display(),
        bytes >> 20,
        known.of(&from).map_err(at(&from))?.short(),
        path.display(),
    ));
    Ok(())
}
