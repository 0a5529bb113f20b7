//! Arguments that several commands take: a system, a computer, a hypervisor.

use super::failure::{Failure, at};
use clap::ValueEnum;
use guest_images::{ImagesError, Progress};
use runner::run::RunError;
use std::path::{Path, PathBuf};
use system::cache::Cache;
use system::{Document, FileName, Mistakes, System, contents, papers_methods};

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

/// Name of a product's hypervisor where it was installed; it lacks the methods that only the papers use.
const PRODUCT: &str = "hypervisor-product";

impl HypervisorArgument {
    /// Where the one for a board is: a product's, if it is there.
    pub(super) fn path_for_board(&self) -> Result<PathBuf, RunError> {
        let product = system::installed::program(&system::installed::command(), PRODUCT);
        match self.elf {
            None if product.is_file() => Ok(product),
            _ => self.path(),
        }
    }

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

/// Returns true if the hypervisor in this file has the papers' methods. A file that cannot be read is refused by its user.
fn has_papers_methods(hypervisor: &Path) -> bool {
    let mark = abi::operator::WITHOUT_PAPERS.as_bytes();
    match std::fs::read(hypervisor) {
        Ok(file) => !file.windows(mark.len()).any(|bytes| bytes == mark),
        Err(_) => true,
    }
}

impl SystemArguments {
    pub(super) fn read(&self) -> Result<System, Failure> {
        let (document, system) = self.read_document()?;
        Mistakes::check(contents(&document, &system))?;
        Ok(system)
    }

    /// Reads the system, and refuses methods that the hypervisor lacks.
    pub(super) fn read_for(&self, hypervisor: &Path) -> Result<System, Failure> {
        let (document, system) = self.read_document()?;
        let mut problems = contents(&document, &system);
        if !has_papers_methods(hypervisor) {
            problems.extend(papers_methods(&document, &system));
        }
        Mistakes::check(problems)?;
        Ok(system)
    }

    fn read_document(&self) -> Result<(Document, System), Failure> {
        let text = read_text(&self.file)?;
        let document = Document::new(&self.file, text, &self.changes)?;
        let system = System::read(&document)?;
        Ok((document, system))
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

/// Builds the images that the system names and that are missing or stale.
pub(super) fn ensure_images(system: &System, cache: &Cache) -> Result<(), ImagesError> {
    let files = built_files(system);
    runner::images::ensure_system(system, &files, cache, &Progress::new())
}

/// The files that the system names as built.
fn built_files(system: &System) -> Vec<&str> {
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
