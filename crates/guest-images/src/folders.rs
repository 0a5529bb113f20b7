//! The folders of the cache that images lie in: each is built as a whole when it is not up to date.

use crate::debian::Guests;
use crate::error::{ImagesError, at};
use crate::progress::Progress;
use crate::recipe::{Folder, RunGuest, Site};
use crate::{
    board, compiler, database, efi, pci, pinned, root_filesystem, serve, site, small_guests, u_boot,
};
use std::cell::OnceCell;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use system::cache::{BUILT_FILES, Cache};

/// Counts the ways in which files were made of packages: images of an earlier one are built again.
const RECIPE: u32 = 2;
/// The file that tells what the folder was built from.
const STAMP: &str = "stamp";

/// The folders, of which the first is what a newcomer needs.
const FOLDERS: [&dyn Folder; 11] = [
    &Guests,
    &board::Board,
    &compiler::Compiler,
    &small_guests::PERF,
    &root_filesystem::Root,
    &database::Database,
    &small_guests::VECTORS,
    &pci::Pci,
    &serve::Serve,
    &u_boot::UBoot,
    &efi::Efi,
];

fn folder_of(file: &str) -> Option<&'static dyn Folder> {
    let (folder, _) = file.split_once('/')?;
    FOLDERS.into_iter().find(|known| known.name() == folder)
}

fn stamp(folder: &dyn Folder) -> String {
    let mut hasher = DefaultHasher::new();
    RECIPE.hash(&mut hasher);
    folder.hash(&mut hasher);
    format!("{:016x}\n", hasher.finish())
}

fn is_built(cache: &Cache, folder: &dyn Folder) -> bool {
    let place = cache.folder().join(folder.name());
    let Ok(text) = fs::read_to_string(place.join(STAMP)) else {
        return false;
    };
    // Whoever cuts a file short, or a host that lost its power, wants it built again.
    sizes(&place, folder).is_ok_and(|sizes| text == stamp(folder) + &sizes)
}

/// The names and sizes of a folder's files, as they are in `place`, line by line.
fn sizes(place: &Path, folder: &dyn Folder) -> Result<String, ImagesError> {
    let names = BUILT_FILES.iter().filter_map(|name| name.split_once('/'));
    let mut text = String::new();
    for (_, name) in names.filter(|(other, _)| *other == folder.name()) {
        let path = place.join(name);
        let size = fs::metadata(&path).map_err(at(&path))?.len();
        text += &format!("{name} {size}\n");
    }
    Ok(text)
}

/// Makes the next [`ensure`] build the images again. Packages that were fetched are kept.
///
/// # Errors
/// The cache cannot be changed.
pub fn forget(cache: &Cache) -> Result<(), ImagesError> {
    for folder in FOLDERS {
        let stamp = cache.folder().join(folder.name()).join(STAMP);
        match fs::remove_file(&stamp) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(at(&stamp)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Builds those of these files of [`BUILT_FILES`] that are not there, with all that belongs to them; returns whether it
/// had to. `run` runs the guests that make disks. Only one process at a time does; the others wait for it.
///
/// # Errors
/// Text of the error and, where one is known, its remedy.
pub fn ensure(
    cache: &Cache,
    files: &[&str],
    progress: &Progress,
    run: RunGuest,
) -> Result<bool, ImagesError> {
    let mut built = false;
    for folder in FOLDERS {
        let wanted = files
            .iter()
            .filter_map(|file| folder_of(file))
            .any(|other| other.name() == folder.name());
        if wanted {
            for needed in folder.needs() {
                built |= ensure_folder(cache, *needed, progress, run)?;
            }
            built |= ensure_folder(cache, folder, progress, run)?;
        }
    }
    Ok(built)
}

fn ensure_folder(
    cache: &Cache,
    folder: &dyn Folder,
    progress: &Progress,
    run: RunGuest,
) -> Result<bool, ImagesError> {
    if is_built(cache, folder) {
        return Ok(false);
    }
    let root = cache.folder();
    let _alone = site::alone(cache, progress)?;
    if is_built(cache, folder) {
        return Ok(false);
    }
    let work = site::WorkFolder::new(root)?;
    let built = work.path().join("built");
    fs::create_dir(&built).map_err(at(&built))?;
    let site = Site {
        folders: root,
        packages: &root.join("packages"),
        work: work.path(),
        built: &built,
        progress,
        run,
        apt: OnceCell::new(),
    };
    folder.build(&site)?;
    if let Some(apt) = site.apt.get() {
        let target = built.join(pinned::FILE);
        fs::write(&target, pinned::text(&apt.used())).map_err(at(&target))?;
    }
    let target = built.join(STAMP);
    let text = stamp(folder) + &sizes(&built, folder)?;
    fs::write(&target, text).map_err(at(&target))?;
    replace(&root.join(folder.name()), &built, &work.path().join("old"))?;
    Ok(true)
}

/// The packages of all folders that these files of [`BUILT_FILES`] are in, and the folders of which it is not known what they were
/// made of.
pub fn packages(cache: &Cache, files: &[&str]) -> (pinned::Packages, Vec<&'static str>) {
    let (mut all, mut unknown) = (pinned::Packages::new(), Vec::new());
    for folder in FOLDERS {
        let own = |file: &&str| folder_of(file).is_some_and(|other| other.name() == folder.name());
        if !files.iter().any(own) {
            continue;
        }
        match pinned::of_folder(&cache.folder().join(folder.name())) {
            Some(packages) => all.extend(packages),
            // What is made of others' files alone has no packages of its own.
            None if !folder.needs().is_empty() => {}
            None => unknown.push(folder.name()),
        }
    }
    // The host that KVM needs is made when it is needed.
    all.extend(
        pinned::of_folder(&cache.folder().join("kvm"))
            .into_iter()
            .flatten(),
    );
    (all, unknown)
}

/// Puts `new` in the place of `old`, whose files go to `aside`.
fn replace(old: &Path, new: &Path, aside: &Path) -> Result<(), ImagesError> {
    if old.exists() {
        fs::rename(old, aside).map_err(at(old))?;
    }
    fs::rename(new, old).map_err(at(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_file_is_built_again() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path());
        let place = root.path().join("debian");
        fs::create_dir(&place).unwrap();
        for name in ["kernel", "initrd", "disk"] {
            fs::write(place.join(name), name.repeat(100)).unwrap();
        }
        let text = stamp(&Guests) + &sizes(&place, &Guests).unwrap();
        fs::write(place.join(STAMP), text).unwrap();
        assert!(is_built(&cache, &Guests));
        fs::write(place.join("kernel"), "kern").unwrap();
        assert!(!is_built(&cache, &Guests));
        fs::remove_file(place.join("kernel")).unwrap();
        assert!(!is_built(&cache, &Guests));
    }
}
