//! The kernel and its modules out of the kernel's package.

use crate::error::{ImagesError, at};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// A module, ready to be loaded.
#[derive(Debug, Clone)]
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its ELF file.
    pub data: Vec<u8>,
    /// The modules to load for it, in that order, itself the last.
    pub order: Vec<String>,
}

/// The kernel's image below `root`.
///
/// # Errors
/// There is none.
pub fn kernel_image(root: &Path) -> Result<PathBuf, ImagesError> {
    let folder = root.join("boot");
    for path in crate::error::listed(&folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("vmlinux-") || name.starts_with("vmlinuz-") {
            return Ok(path);
        }
    }
    Err(ImagesError::Missing {
        what: String::from("the kernel"),
    })
}

/// Checks that the kernel below `root` is the one in `kernel`, so that it loads the modules that come with it; `what` needs them.
///
/// # Errors
/// It is another one.
pub fn check_kernel(root: &Path, kernel: &Path, what: &str) -> Result<(), ImagesError> {
    let packed = kernel_image(root)?;
    let same = fs::read(&packed).map_err(at(&packed))? == fs::read(kernel).map_err(at(kernel))?;
    match same {
        true => Ok(()),
        false => Err(ImagesError::Missing {
            what: format!(
                "the kernel in {}, for which {what} is needed; 'partita images --rebuild' brings the one that",
                kernel.display()
            ),
        }),
    }
}

/// The modules called `names` and those that they depend on, each after those.
///
/// # Errors
/// One that is named is not there, or one cannot be read.
pub fn collect(root: &Path, names: &[&str]) -> Result<Vec<Module>, ImagesError> {
    let mut files = BTreeMap::new();
    for folder in ["usr/lib/modules", "lib/modules"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            find(&folder, &mut files)?;
        }
    }
    let mut modules = Vec::new();
    for name in names {
        if !files.contains_key(*name) {
            return Err(ImagesError::Missing {
                what: format!("the module {name}"),
            });
        }
        load(name, &files, &mut modules)?;
    }
    Ok(modules)
}

/// Files of modules below `folder` by the modules' names.
fn find(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), ImagesError> {
    for path in crate::error::listed(folder)? {
        if path.is_dir() && !path.is_symlink() {
            find(&path, files)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if let Some((module, "ko" | "ko.xz")) = name.split_once('.') {
            files.insert(module.replace('-', "_"), path);
        }
    }
    Ok(())
}

/// Adds a module after those that it depends on. One that is built into the kernel has no file.
fn load(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    modules: &mut Vec<Module>,
) -> Result<(), ImagesError> {
    let Some(path) = files.get(name) else {
        return Ok(());
    };
    if modules.iter().any(|module| module.name == name) {
        return Ok(());
    }
    let packed = fs::read(path).map_err(at(path))?;
    let malformed = |problem: String| ImagesError::Malformed {
        path: path.clone(),
        problem,
    };
    let data = match path.extension() {
        Some(extension) if extension == "xz" => {
            let mut data = Vec::new();
            lzma_rs::xz_decompress(&mut Cursor::new(packed), &mut data)
                .map_err(|error| malformed(format!("{error:?}")))?;
            data
        }
        _ => packed,
    };
    let depends = dependencies(&data).map_err(|error| malformed(error.to_string()))?;
    let mut order = Vec::new();
    for other in depends {
        load(&other, files, modules)?;
        let needed = modules.iter().find(|module| module.name == other);
        for name in needed.iter().flat_map(|module| &module.order) {
            if !order.contains(name) {
                order.push(name.clone());
            }
        }
    }
    order.push(String::from(name));
    modules.push(Module {
        name: String::from(name),
        data,
        order,
    });
    Ok(())
}

/// The modules that a module says it depends on: `depends=` in its section `.modinfo`, strings with a NUL each.
fn dependencies(data: &[u8]) -> Result<Vec<String>, object::Error> {
    let file = object::File::parse(data)?;
    let Some(section) = file.section_by_name(".modinfo") else {
        return Ok(Vec::new());
    };
    let strings = section.data()?.split(|byte| *byte == 0);
    let depends = strings
        .filter_map(|string| string.strip_prefix(b"depends="))
        .next();
    let depends = String::from_utf8_lossy(depends.unwrap_or_default()).into_owned();
    let names = depends.split(',').filter(|name| !name.is_empty());
    Ok(names.map(|name| name.replace('-', "_")).collect())
}
