//! Where what belongs to the command is: beside it where it was built, and below the same prefix where it was installed.

use std::path::{Path, PathBuf};

/// Where the bare programs are built, seen from the folder `target`.
const BUILT: &str = "riscv64gc-unknown-none-elf/release";
/// Where they are installed, and where data are, seen from the prefix whose `bin` the command is in.
const PROGRAMS: &str = "lib/partita";
const DATA: &str = "share/partita";
/// How many of the folders that the command lies in are looked at.
const DEPTH: usize = 5;

/// The exercisers' kernel by name.
pub const EXERCISER: &str = "exerciser";
/// Exercisers' kernel with its code and data in another order.
pub const SHUFFLED: &str = "exerciser-shuffled";

/// The bare program of this name that belongs to the `command`, or where it would be.
pub fn program(command: &Path, name: &str) -> PathBuf {
    let above = || command.ancestors().skip(1).take(DEPTH);
    let built = above().map(|folder| folder.join(BUILT).join(name));
    let installed = above().map(|folder| folder.join(PROGRAMS).join(name));
    let mut places = built.chain(installed);
    let expected = command
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("target"))
        .join(BUILT)
        .join(name);
    places.find(|path| path.is_file()).unwrap_or(expected)
}

/// The folder of this name that came with the `command`, such as `experiments`: in its tree, below its prefix, or, if it is
/// in neither, the one in the present folder.
pub fn folder(command: &Path, name: &str) -> PathBuf {
    let above = || command.ancestors().skip(1).take(DEPTH);
    let tree = above().map(|folder| folder.join(name));
    let installed = above().map(|folder| folder.join(DATA).join(name));
    let mut places = installed.chain(tree);
    places
        .find(|path| path.is_dir())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// This process's own file.
pub fn command() -> PathBuf {
    let command = std::env::current_exe().unwrap_or_default();
    command.canonicalize().unwrap_or(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn file(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    #[test]
    fn programs_are_found_built_and_installed() {
        let root = tempfile::tempdir().unwrap();
        let built = root.path().join("tree/target");
        let command = built.join("release/partita");
        let hypervisor = built.join("riscv64gc-unknown-none-elf/release/hypervisor");
        // Where it is not, the place where it would be is named.
        assert_eq!(program(&command, "hypervisor"), hypervisor);
        file(&hypervisor);
        assert_eq!(program(&command, "hypervisor"), hypervisor);
        // Another build's command, and a test's, find it too.
        assert_eq!(
            program(&built.join("debug/deps/partita-1"), "hypervisor"),
            hypervisor
        );
        fs::create_dir_all(root.path().join("tree/experiments")).unwrap();
        assert_eq!(
            folder(&command, "experiments"),
            root.path().join("tree/experiments")
        );

        let prefix = root.path().join("usr");
        let installed = prefix.join("lib/partita/exerciser");
        file(&installed);
        let command = prefix.join("bin/partita");
        assert_eq!(program(&command, "exerciser"), installed);
        let experiments = prefix.join("share/partita/experiments");
        fs::create_dir_all(&experiments).unwrap();
        assert_eq!(folder(&command, "experiments"), experiments);
        assert_eq!(folder(&command, "nothing"), Path::new("nothing"));
    }
}
