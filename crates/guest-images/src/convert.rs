//! Raw disks of images in other forms, made by QEMU's `qemu-img` and kept in the cache for as long as no file of the image changes.

use crate::error::{ImagesError, at};
use crate::process::run;
use crate::progress::Progress;
use std::fs;
use std::path::Path;
use std::process::Command;
use system::cache::Cache;
use system::disk_image::Image;
use system::{Disk, System};

/// Converts those of a system's disks that are no raw disks and that the cache does not have.
///
/// # Errors
/// An image is broken, or `qemu-img` is missing or fails.
pub fn convert(system: &System, cache: &Cache, progress: &Progress) -> Result<(), ImagesError> {
    for (_, disk) in system.all_disks() {
        if let Some(image) = disk.image()? {
            let target = image.raw(disk.snapshot(), cache)?;
            if !target.is_file() {
                convert_one(disk, &image, &target, progress)?;
            }
        }
    }
    Ok(())
}

/// Makes the raw disk `target` of an image, and removes those of the image's earlier states. Runs that still have these open keep them.
fn convert_one(
    disk: &Disk,
    image: &Image,
    target: &Path,
    progress: &Progress,
) -> Result<(), ImagesError> {
    let (Some(source), Some(folder)) = (image.files.first(), target.parent()) else {
        return Ok(());
    };
    fs::create_dir_all(folder).map_err(at(folder))?;
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let form = image.form.name();
    progress.step(&format!("making a raw disk of {name}, in the form {form}"));
    let part = tempfile::Builder::new()
        .suffix(".part")
        .tempfile_in(folder)
        .map_err(at(folder))?;
    let mut command = Command::new("qemu-img");
    command.args(["convert", "-O", "raw", "-f", image.form.for_qemu()]);
    if let Some(snapshot) = disk.snapshot() {
        // A comma would end the name.
        let snapshot = snapshot.replace(',', ",,");
        command.arg("-l").arg(format!("snapshot.name={snapshot}"));
    }
    // A relative path with a colon would be a protocol's.
    let source = source.canonicalize().map_err(at(source))?;
    command.arg(&source).arg(part.path());
    run(&mut command, "qemu-img", "qemu-utils")?;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "raw") {
            // Another process may have removed it.
            let _ = fs::remove_file(&path);
        }
    }
    let persisted = part.persist(target);
    persisted.map_err(|error| at(target)(error.error))?;
    Ok(())
}
