//! Paths of files in the system image.

use crate::{FileName, System};
use std::collections::BTreeMap;
use std::path::Path;

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

    /// The files with their paths in the archive.
    pub fn files(&self) -> impl Iterator<Item = (&FileName, &str)> {
        let names = self.names.iter();
        names.map(|(file, name)| (file, name.as_str()))
    }
}
