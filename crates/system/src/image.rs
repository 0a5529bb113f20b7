//! The system image: what the hypervisor gets as its initial RAM disk.
//!
//! A cpio archive (newc) with the description ([`description`]) first, then each file that it names,
//! once, however many VMs use it.

pub mod archive;
mod contents;
pub mod description;
pub mod slots;

pub use contents::Contents;

use crate::cache::Cache;
use crate::{FileName, System, kernel};
use abi::system::VmName;
use std::path::PathBuf;

/// Why no system image could be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is too large for the archive's form.
    #[error(transparent)]
    Archive(#[from] archive::TooLarge),
    /// The description cannot be written.
    #[error("the system's description cannot be written: {0}")]
    Description(#[from] vm_fdt::Error),
}

/// Makes the system image. `focus` is the VM that has the console at the start.
///
/// # Errors
/// A file cannot be read, or something is too large.
pub fn compose(
    system: &System,
    slots: &slots::Assignment,
    cache: &Cache,
    focus: Option<&VmName>,
) -> Result<Vec<u8>, ImageError> {
    let contents = Contents::of(system);
    let mut archive = archive::Writer::new();
    let description = description::compile(system, slots, &contents, focus)?;
    archive.file(abi::system::FILE_NAME, 0o644, &description)?;
    let boot = |file: &FileName| {
        let vm = system.vms.iter().find(|vm| vm.kernel.value == *file);
        vm.map(|vm| vm.boot)
    };
    for (file, name) in contents.files() {
        let path = file.path(cache);
        let data = match boot(file) {
            Some(boot) => kernel::read(&path, boot),
            None => std::fs::read(&path),
        };
        let data = data.map_err(|error| ImageError::Read { path, error })?;
        archive.aligned_file(name, 0o644, &data)?;
    }
    Ok(archive.finish())
}

#[cfg(test)]
mod tests;
