//! The command line: what can be asked for, and what the exit code says.

mod bench;
mod check;
mod images;
mod run;

use clap::{Parser, Subcommand, ValueEnum};
use partita::bench::BenchError;
use partita::cache::NoCache;
use partita::computer::ComputerError;
use partita::images::ImagesError;
use partita::run::RunError;
use partita::system::{Document, Mistakes, System};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes:
  0    what was asked for was done; after a run: every VM powered off in order
  1    the system file has mistakes
  2    the command line has mistakes
  3    a run ended, but a VM failed or did not power off
  4    a run took longer than it may
  5    a run could not be started, or images could not be built
  130  a run was broken off";

/// Composes systems of virtual machines, runs them, and shows what the performance monitor saw.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Counts the instructions of one guest natively, under Partita and under KVM
    Bench(BenchArguments),
    /// Finds every mistake in a system without running it
    Check {
        #[command(flatten)]
        system: SystemArguments,
    },
    /// Fetches and builds what Debian guests boot, unless it is there
    Images {
        /// Builds them even if they are there
        #[arg(long)]
        again: bool,
        /// Builds the compiler's disk too, which otherwise is built when a system names it
        #[arg(long)]
        all: bool,
    },
    /// Runs a system and shows what the performance monitor saw
    Run(RunArguments),
}

/// A system and the changes to it.
#[derive(Debug, clap::Args)]
struct SystemArguments {
    /// The system's TOML file
    #[arg(value_name = "SYSTEM.toml")]
    file: PathBuf,
    /// Changes a key for this time, such as vm.web.share=30; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
}

/// Computers that a system runs on.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Computer {
    /// The machine: deterministic, in this process
    Machine,
    /// QEMU's virt board
    Qemu,
}

#[derive(Debug, clap::Args)]
struct RunArguments {
    #[command(flatten)]
    system: SystemArguments,
    /// The computer to run on
    #[arg(long, value_enum, default_value_t = Computer::Qemu)]
    on: Computer,
    /// On the machine, what instructions and devices cost: the name of a profile that ships, or a TOML file. Without
    /// it, every instruction takes one cycle
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// On the machine, what everything random follows from
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// On the machine, writes what its hardware monitor counted, as JSON
    #[arg(long, value_name = "FILE")]
    monitor: Option<PathBuf>,
    /// Gives this VM's console to the terminal; `partita` stands for the operator's prompt.
    /// Ctrl-] is the escape key: then n for the next VM, 1 to 9 for a VM by number, m for the prompt,
    /// q to power everything off, Ctrl-] for itself
    #[arg(long, value_name = "VM")]
    console: Option<String>,
    /// Writes the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Gives the run up after this time; without it, after the system's time-limit
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    #[command(flatten)]
    hypervisor: HypervisorArgument,
    /// Shows the firmware's lines too
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Debug, clap::Args)]
struct BenchArguments {
    /// Writes the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Puts the tables into this document, between the lines that mark their place
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// Does less work, once
    #[arg(long)]
    quick: bool,
    /// How often everything is counted; without it three times, with --quick once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// Counts on these alone
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WAY")]
    on: Vec<BenchWay>,
    #[command(flatten)]
    hypervisor: HypervisorArgument,
}

/// Ways to run a guest whose instructions are counted.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum BenchWay {
    /// By itself
    Native,
    /// Under Partita
    Partita,
    /// Under KVM, with QEMU
    Kvm,
}

/// Which hypervisor.
#[derive(Debug, clap::Args)]
struct HypervisorArgument {
    /// The hypervisor's ELF file; without it, the one that `make build` built beside this command
    #[arg(long = "hypervisor", value_name = "FILE")]
    elf: Option<PathBuf>,
}

impl HypervisorArgument {
    /// Where it is.
    fn path(&self) -> Result<PathBuf, RunError> {
        let path = self.elf.clone().unwrap_or_else(|| {
            partita::run::default_hypervisor(&std::env::current_exe().unwrap_or_default())
        });
        if path.is_file() {
            Ok(path)
        } else {
            Err(RunError::NoHypervisor(path))
        }
    }
}

/// Why the command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The system file.
    #[error("{0}")]
    Mistakes(#[from] Mistakes),
    /// A file of the command line.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        error: std::io::Error,
    },
    /// A VM failed.
    #[error("{}", .0.join("\npartita: "))]
    Vm(Vec<String>),
    /// The time limit.
    #[error("the run took longer than it may and was ended")]
    TimeLimit,
    /// The user.
    #[error("the run was broken off")]
    Interrupted,
    /// No place for images.
    #[error(transparent)]
    Cache(#[from] NoCache),
    /// The images.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// What the computer is to be like.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// An option for another computer.
    #[error("{0} is for the machine, and this run is on QEMU")]
    MachineOnly(&'static str),
    /// The benchmark.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The document for the benchmark's tables.
    #[error("{path} has no place for the tables: it lacks the line {line}", path = path.display())]
    NoPlace {
        /// Which.
        path: PathBuf,
        /// What is missing.
        line: &'static str,
    },
}

impl Failure {
    /// What the shell is told; [`EXIT_CODES`] has the list.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Mistakes(_) => 1,
            Self::File { .. } | Self::NoPlace { .. } | Self::MachineOnly(_) | Self::Computer(_) => {
                2
            }
            Self::Vm(_) => 3,
            Self::TimeLimit => 4,
            Self::Cache(_) | Self::Images(_) | Self::Run(_) | Self::Bench(_) => 5,
            Self::Interrupted => 130,
        })
    }
}

/// Does what was asked.
///
/// # Errors
/// Why it could not.
pub fn execute(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Bench(arguments) => bench::execute(&arguments),
        Command::Check { system } => check::execute(&system),
        Command::Images { again, all } => images::execute(again, all),
        Command::Run(arguments) => run::execute(&arguments),
    }
}

impl SystemArguments {
    fn read(&self) -> Result<System, Failure> {
        let text = std::fs::read_to_string(&self.file).map_err(at(&self.file))?;
        let document = Document::new(&self.file, text, &self.changes)?;
        Ok(System::read(&document)?)
    }
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
    move |error| Failure::File {
        path: path.to_owned(),
        error,
    }
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| Failure::File {
        path: path.to_owned(),
        error: error.into(),
    })?;
    text.push(b'\n');
    std::fs::write(path, text).map_err(at(path))
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
