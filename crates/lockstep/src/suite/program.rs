//! Which files of a folder are programs.

use std::io::Read;
use std::path::{Path, PathBuf};

/// How the files are named that hold the signature which a program should leave: the program's
/// name with one of these added or in place of its extension.
const REFERENCES: [&str; 3] = ["reference_output", "signature", "sig"];

/// A program and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// The path from the suite's folder, by which it is called.
    pub name: String,
    /// The ELF file.
    pub file: PathBuf,
    /// The signature to compare with, if one lies beside it.
    pub reference: Option<PathBuf>,
}

impl Program {
    /// The row of the table that the program belongs to: its folder and its name up to the last
    /// hyphen, such as `rv64ui-p` for the riscv-tests.
    #[must_use]
    pub fn group(&self) -> &str {
        let slash = self.name.rfind('/').map_or(0, |at| at + 1);
        let name = self.name.get(slash..).unwrap_or_default();
        // `-p-` and `-v-` are the riscv-tests' environments.
        let end = ["-p-", "-v-", "-pm-", "-pt-"]
            .iter()
            .find_map(|mark| name.find(mark).map(|at| at + mark.len() - 1))
            .map(|at| slash + at);
        match end {
            Some(end) => self.name.get(..end).unwrap_or_default(),
            None if slash > 0 => self.name.get(..slash - 1).unwrap_or_default(),
            None => ".",
        }
    }
}

/// An ordinary file, or a link to one: a pipe or a device would not be read to its end.
fn is_file(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file())
}

fn is_elf(file: &Path) -> bool {
    let mut magic = [0; 4];
    std::fs::File::open(file)
        .and_then(|mut file| file.read_exact(&mut magic))
        .is_ok_and(|()| magic == *b"\x7fELF")
}

fn reference(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    REFERENCES.iter().find_map(|ending| {
        let added = file.with_file_name(format!("{name}.{ending}"));
        let replaced = file.with_extension(ending);
        [added, replaced].into_iter().find(|path| path.is_file())
    })
}

/// The programs in a folder and its folders, by name. Links to folders are not followed.
///
/// # Errors
/// A folder that cannot be read.
pub fn find(folder: &Path) -> std::io::Result<Vec<Program>> {
    let mut programs = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in std::fs::read_dir(&current)? {
            let entry = entry?;
            let file = entry.path();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(file);
            } else if is_file(&file) && !is_object(&file) && is_elf(&file) {
                let name = file.strip_prefix(folder).unwrap_or(&file);
                programs.push(Program {
                    name: name.to_string_lossy().into_owned(),
                    reference: reference(&file),
                    file,
                });
            }
        }
    }
    programs.sort();
    Ok(programs)
}

/// Tests for files that a compiler leaves beside the programs.
fn is_object(file: &Path) -> bool {
    file.extension()
        .is_some_and(|ending| ending == "o" || ending == "a" || ending == "so")
}
