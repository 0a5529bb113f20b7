//! Programs and exactly the libraries that they link.

use crate::error::{ImagesError, at};
use object::LittleEndian;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFile {
    /// Where it goes in the guest, without a leading slash.
    pub name: String,
    /// Where it is now.
    pub source: PathBuf,
}

/// The programs (paths below `root`) and all libraries that they and their libraries link.
///
/// # Errors
/// A program or a library is not below `root`, or is no ELF file.
pub fn closure(root: &Path, programs: &[&str]) -> Result<Vec<GuestFile>, ImagesError> {
    let mut libraries = BTreeMap::new();
    for folder in ["lib", "usr/lib"] {
        find(root, &root.join(folder), &mut libraries)?;
    }
    let mut files: Vec<GuestFile> = programs
        .iter()
        .map(|name| GuestFile {
            name: String::from(*name),
            source: root.join(name),
        })
        .collect();
    let mut position = 0;
    while let Some(file) = files.get(position).cloned() {
        position += 1;
        for library in needed(&file.source)? {
            let found = libraries
                .get(&library)
                .ok_or_else(|| ImagesError::Missing {
                    what: format!("the library {library}, which {} needs", file.name),
                })?;
            if !files.contains(found) {
                files.push(found.clone());
            }
        }
    }
    Ok(files)
}

/// Shared objects below `folder`, by the names under which programs ask for them.
fn find(
    root: &Path,
    folder: &Path,
    found: &mut BTreeMap<String, GuestFile>,
) -> Result<(), ImagesError> {
    // A link to a folder is followed where it leads, and only there.
    if folder.is_symlink() || !folder.is_dir() {
        return Ok(());
    }
    for path in crate::error::listed(folder)? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            find(root, &path, found)?;
        } else if name.contains(".so")
            // A link whose target is in no package is none that is linked.
            && let Ok(source) = path.canonicalize()
        {
            let inside = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string();
            // In the guest `lib` is a link to `usr/lib`.
            let inside = inside.strip_prefix("usr/").unwrap_or(&inside);
            let file = GuestFile {
                name: format!("usr/{inside}"),
                source,
            };
            // Of two with the same name, that closest to the root is the one on the loader's path.
            let nearer = |other: &GuestFile| file.name.len() < other.name.len();
            if found.get(&name).is_none_or(nearer) {
                found.insert(name, file);
            }
        }
    }
    Ok(())
}

/// The libraries that an ELF file asks for (`DT_NEEDED`).
fn needed(path: &Path) -> Result<Vec<String>, ImagesError> {
    let data = fs::read(path).map_err(at(path))?;
    read_needed(&data).map_err(|error| ImagesError::Malformed {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

fn read_needed(data: &[u8]) -> Result<Vec<String>, object::Error> {
    let header = FileHeader64::<LittleEndian>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let mut names = Vec::new();
    if let Some((entries, strings)) = sections.dynamic(endian, data)? {
        let strings = sections.strings(endian, data, strings)?;
        for entry in entries
            .iter()
            .filter(|entry| entry.tag(endian) == DT_NEEDED)
        {
            let name = entry.string(endian, strings)?;
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}
