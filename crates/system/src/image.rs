//! The system image: what the hypervisor gets as its initial RAM disk.
//!
//! A cpio archive (newc) with the description ([`description`]) first, then each file that it names,
//! once, however many VMs use it.

pub mod archive;
pub mod description;
pub mod slots;

use crate::cache::Cache;
use crate::{FileName, System};
use abi::system::VmName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

/// Paths in the archive of the files that the VMs boot from.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    names: BTreeMap<FileName, String>,
}

impl Contents {
    /// Gives each file a path.
    pub fn of(system: &System) -> Self {
        let mut names = BTreeMap::new();
        for vm in &system.vms {
            for file in std::iter::once(&vm.kernel).chain(&vm.initrd) {
                let next = names.len();
                names
                    .entry(file.value.clone())
                    .or_insert_with(|| match &file.value {
                        FileName::Built(name) => name.clone(),
                        // Two files may have the same name in different folders.
                        FileName::Path(path) => {
                            let name = path.file_name().map(Path::new).map(Path::display);
                            format!(
                                "files/{next}/{}",
                                name.map(|name| name.to_string()).unwrap_or_default()
                            )
                        }
                    });
            }
        }
        Self { names }
    }

    /// The path of a file in the archive; empty if it has none.
    pub fn path(&self, file: &FileName) -> &str {
        self.names.get(file).map_or("", String::as_str)
    }
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
    for (file, name) in &contents.names {
        let path = file.path(cache);
        let data = std::fs::read(&path).map_err(|error| ImageError::Read { path, error })?;
        archive.aligned_file(name, 0o644, &data)?;
    }
    Ok(archive.finish())
}

#[cfg(test)]
mod tests;
