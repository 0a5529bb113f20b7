//! A copy of the sources, in which mutants are built.

use super::{Mutant, MutantError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files and folders that the hypervisor is built from, seen from the root of the sources.
const SOURCES: [&str; 5] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "scripts",
    "crates",
];
/// The hypervisor's ELF file, seen from the target folder.
const HYPERVISOR: &str = "riscv64gc-unknown-none-elf/release/hypervisor";
/// Lines of a failed build that are kept.
const MAX_LINES: usize = 20;

/// Reason why a mutant could not be built.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The mutant.
    #[error(transparent)]
    Mutant(#[from] MutantError),
    /// A file of the copy.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// The compiler's last lines.
    #[error("the hypervisor does not compile:\n{0}")]
    DoesNotCompile(String),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> TreeError {
    let path = path.to_path_buf();
    move |error| TreeError::File { path, error }
}

/// A copy of the sources, with a target folder of its own that all mutants share.
#[derive(Debug)]
pub struct Tree {
    sources: PathBuf,
    copy: PathBuf,
    target: PathBuf,
}

impl Tree {
    /// Copies the sources at `sources` into `place`, as far as they are not there already: what has not changed is not built again.
    ///
    /// # Errors
    /// [`TreeError::File`].
    pub fn copy(sources: &Path, place: &Path) -> Result<Self, TreeError> {
        let tree = Self {
            sources: sources.to_path_buf(),
            copy: place.join("tree"),
            target: place.join("build"),
        };
        for name in SOURCES {
            copy(&sources.join(name), &tree.copy.join(name))?;
        }
        Ok(tree)
    }

    /// Builds the hypervisor as it is, and returns the place of a copy of its ELF file.
    ///
    /// # Errors
    /// [`TreeError::File`], [`TreeError::DoesNotCompile`].
    pub fn build_sound(&self) -> Result<PathBuf, TreeError> {
        self.build("sound")
    }

    /// Builds the hypervisor with a fault, and returns the place of a copy of its ELF file. The copied sources are as before then.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn build_mutant(&self, mutant: &Mutant) -> Result<PathBuf, TreeError> {
        let original = self.sources.join(&mutant.file);
        let text = std::fs::read_to_string(&original).map_err(at(&original))?;
        let path = self.copy.join(&mutant.file);
        std::fs::write(&path, mutant.apply(&text)?).map_err(at(&path))?;
        let built = self.build(&mutant.name);
        std::fs::write(&path, text).map_err(at(&path))?;
        built
    }

    /// Builds as the product is built: a mutant differs from it by its fault alone.
    fn build(&self, name: &str) -> Result<PathBuf, TreeError> {
        let script = self.copy.join("scripts/cargo");
        let output = Command::new(&script)
            .args(["--bare", "build", "--release", "-p", "hypervisor"])
            .arg("--target-dir")
            .arg(&self.target)
            .current_dir(&self.copy)
            .output()
            .map_err(at(&script))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let errors = said.lines().skip_while(|line| !line.starts_with("error"));
            let errors: Vec<&str> = errors.take(MAX_LINES).collect();
            return Err(TreeError::DoesNotCompile(errors.join("\n")));
        }
        let built = self.target.join(HYPERVISOR);
        let kept = self.target.join(format!("hypervisor-{name}"));
        std::fs::copy(&built, &kept).map_err(at(&built))?;
        Ok(kept)
    }
}

/// Copies a file or a folder. Files that are there with the same contents stay, and so do their times.
fn copy(from: &Path, to: &Path) -> Result<(), TreeError> {
    if !from.is_dir() {
        let bytes = std::fs::read(from).map_err(at(from))?;
        if std::fs::read(to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder).map_err(at(folder))?;
        }
        // The rights go along: scripts are executed.
        return std::fs::copy(from, to).map(|_| ()).map_err(at(to));
    }
    for entry in std::fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree whose "compiler" copies one source file to where the hypervisor is expected, or fails where that file says so.
    fn tree(folder: &Path) -> Tree {
        use std::os::unix::fs::PermissionsExt as _;
        let sources = folder.join("sources");
        for folder in ["scripts", "crates"] {
            std::fs::create_dir_all(sources.join(folder)).unwrap();
        }
        for name in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"] {
            std::fs::write(sources.join(name), "").unwrap();
        }
        std::fs::write(sources.join("crates/a.rs"), "one\ntwo\n").unwrap();
        let script = format!(
            "#!/bin/sh\ngrep -q wrong crates/a.rs && {{ echo 'warning: x'; echo 'error: wrong'; }} >&2 && exit 1\n\
             mkdir -p \"${{7%/*}}/build/$(dirname {HYPERVISOR})\"\ncp crates/a.rs \"$7/{HYPERVISOR}\"\n"
        );
        let cargo = sources.join("scripts/cargo");
        std::fs::write(&cargo, script).unwrap();
        std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
        Tree::copy(&sources, &folder.join("place")).unwrap()
    }

    fn mutant(after: &str) -> Mutant {
        Mutant {
            name: String::from("m"),
            fault: String::new(),
            origin: String::new(),
            file: PathBuf::from("crates/a.rs"),
            before: String::from("two"),
            after: String::from(after),
        }
    }

    #[test]
    fn sources_stay_sound_behind_a_mutant() {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path());
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(
            read(tree.build_mutant(&mutant("three")).unwrap()),
            "one\nthree\n"
        );
        assert_eq!(read(tree.build_sound().unwrap()), "one\ntwo\n");
        let broken = tree.build_mutant(&mutant("wrong"));
        assert!(matches!(broken, Err(TreeError::DoesNotCompile(said)) if said == "error: wrong"));
        assert_eq!(read(tree.build_sound().unwrap()), "one\ntwo\n");
        assert_eq!(
            read(folder.path().join("sources/crates/a.rs")),
            "one\ntwo\n"
        );
    }

    #[test]
    fn unchanged_files_keep_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path());
        let path = tree.copy.join("crates/a.rs");
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(long_ago).unwrap();
        let again = || Tree::copy(&tree.sources, &folder.path().join("place")).unwrap();
        again();
        let time = || std::fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(time(), long_ago);
        std::fs::write(tree.sources.join("crates/a.rs"), "other").unwrap();
        again();
        assert_ne!(time(), long_ago);
    }
}
