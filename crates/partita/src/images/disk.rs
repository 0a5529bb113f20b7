//! The guests' disk: an ext4 file system with the workloads' programs.

use super::libraries::GuestFile;
use super::{ImagesError, at, run};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Size of the image. It is mostly a hole.
const SIZE: &str = "256M";
/// Folders that a guest mounts something on or works in.
const FOLDERS: [&str; 6] = ["dev", "etc", "proc", "sys", "tmp", "work"];

/// Makes the image `image` from `files`, which are gathered in `folder` on the way.
///
/// # Errors
/// A file cannot be copied, or mke2fs fails.
pub fn make(image: &Path, folder: &Path, files: &[GuestFile]) -> Result<(), ImagesError> {
    for GuestFile { name, source } in files {
        let target = folder.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        fs::copy(source, &target).map_err(at(source))?;
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).map_err(at(&target))?;
    }
    from_folder(image, folder, "partita", SIZE)
}

/// Makes the image `image` of `size` (as mke2fs reads it), labelled `label`, from what is in `folder`, to which the folders are added that
/// a guest wants there.
///
/// # Errors
/// The folder cannot be changed, or mke2fs fails.
pub fn from_folder(
    image: &Path,
    folder: &Path,
    label: &str,
    size: &str,
) -> Result<(), ImagesError> {
    for name in FOLDERS {
        let path = folder.join(name);
        fs::create_dir_all(&path).map_err(at(&path))?;
    }
    let link = folder.join("lib");
    if !link.exists() {
        symlink("usr/lib", &link).map_err(at(&link))?;
    }
    // It stands beside the superuser's own programs, which not everybody's path names.
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("mke2fs");
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    // Files belong to the guest's superuser, whoever builds the image.
    command.args([
        "-q",
        "-F",
        "-t",
        "ext4",
        "-L",
        label,
        "-E",
        "root_owner=0:0",
        "-d",
    ]);
    command.arg(folder).arg(image).arg(size);
    run(&mut command, "mke2fs", "e2fsprogs").map(drop)
}
