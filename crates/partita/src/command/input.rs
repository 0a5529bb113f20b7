//! Arguments that several commands take: a system, a computer, a hypervisor.

use super::failure::{Failure, at};
use clap::ValueEnum;
use runner::run::RunError;
use std::path::{Path, PathBuf};
use system::{Document, FileName, Mistakes, System, contents};

/// A system and the changes to it.
#[derive(Debug, clap::Args)]
pub(super) struct SystemArguments {
    /// The system's TOML file
    #[arg(value_name = "SYSTEM.toml")]
    pub(super) file: PathBuf,
    /// Changes a key for this time, such as vm.web.share=30; may be given many times
    ///
    /// `partita reference` lists the keys with their values and limits.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) changes: Vec<String>,
}

/// Computers that a system runs on.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Computer {
    /// The machine: deterministic, in this process
    Machine,
    /// QEMU's virt board
    Qemu,
}

/// Which hypervisor.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct HypervisorArgument {
    /// The hypervisor's ELF file; without it, the one that `make build` built beside this command
    #[arg(long = "hypervisor", value_name = "FILE")]
    pub(super) elf: Option<PathBuf>,
}

impl HypervisorArgument {
    /// Where it is.
    pub(super) fn path(&self) -> Result<PathBuf, RunError> {
        let path = self
            .elf
            .clone()
            .unwrap_or_else(|| runner::run::default_hypervisor(&system::installed::command()));
        if path.is_file() {
            Ok(path)
        } else {
            Err(RunError::NoHypervisor(path))
        }
    }
}

impl SystemArguments {
    pub(super) fn read(&self) -> Result<System, Failure> {
        let text = read_text(&self.file)?;
        let document = Document::new(&self.file, text, &self.changes)?;
        let system = System::read(&document)?;
        Mistakes::check(contents(&document, &system))?;
        Ok(system)
    }
}

/// A system's text; `-` stands for standard input.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).map_err(at(path));
    }
    std::fs::read_to_string(path).map_err(at(path))
}

/// A file's name without its ending.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The files that the system names as built.
pub(super) fn built_files(system: &System) -> Vec<&str> {
    let files = system
        .vms
        .iter()
        .flat_map(|vm| std::iter::once(&vm.kernel).chain(&vm.initrd));
    let disks = system.all_disks().map(|(_, disk)| &disk.file);
    let names = files.chain(disks).filter_map(|file| match &file.value {
        FileName::Built(name) => Some(name.as_str()),
        FileName::Path(_) => None,
    });
    names.collect()
}
