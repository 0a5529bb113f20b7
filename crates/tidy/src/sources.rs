//! The workspace's files.

use std::fs;
use std::path::{Path, PathBuf};

/// Text file with its path from the workspace's root.
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    /// Name of the crate below `crates/`, or the first folder.
    pub fn owner(&self) -> String {
        let mut parts = self.path.iter().map(|part| part.to_string_lossy());
        let first = parts.next().unwrap_or_default();
        match first.as_ref() {
            "crates" => parts.next().unwrap_or_default().into_owned(),
            other => other.to_owned(),
        }
    }
}

/// Root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names of the workspace's crates: the folders below `crates/`.
pub fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).expect("crates/ is a folder");
    let mut names: Vec<String> = folders
        .map(|entry| entry.expect("an entry can be read"))
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// All files with this extension, sorted by path, without built files and hidden folders.
pub fn with_extension(extension: &str) -> Vec<Source> {
    let root = root();
    let mut paths = Vec::new();
    collect(&root, extension, &mut paths);
    paths.sort();
    paths
        .into_iter()
        .map(|path| Source {
            text: fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            path: path
                .strip_prefix(&root)
                .expect("files lie below the root")
                .into(),
        })
        .collect()
}

fn collect(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            collect(&path, extension, paths);
        } else if path.extension().is_some_and(|own| own == extension) {
            paths.push(path);
        }
    }
}
