//! The command line: what can be asked for, and what the exit code says.

mod bench;
mod beside;
mod board;
mod check;
mod claims;
mod compare;
mod diff;
mod explain;
mod images;
mod laboratory;
mod output;
mod paper;
mod profile;
mod reference;
mod rerun;
mod results;
mod run;
mod shell;
mod sweep;
mod top;
mod trace;

use clap::{Parser, Subcommand, ValueEnum};
use partita::bench::BenchError;
use partita::cache::NoCache;
use partita::compare::{ExpandError, GridError};
use partita::computer::ComputerError;
use partita::images::ImagesError;
use partita::laboratory::{PointError, SeriesError, StoreError};
use partita::paper::{PlanError, PublishedError};
use partita::run::RunError;
use partita::system::{Bytes, Document, Mistakes, System, contents};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes, those of `partita machine` aside, which its own --help lists:
  0    what was asked for was done; after a run: every VM powered off in order
  1    the system file or a profile has mistakes
  2    the command line has mistakes
  3    a run ended, but a VM failed or did not power off
  4    a run took longer than it may, or everybody in it waited for what would never come
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
    /// Writes what a shell needs to complete this command's words
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Writes manual pages, one for each part of the command, into a folder
    Manual {
        /// The folder
        folder: PathBuf,
    },
    /// Finds every mistake in a system without running it
    Check {
        #[command(flatten)]
        system: SystemArguments,
    },
    /// Shows what the policies are claimed to do, claim by claim
    Claims(claims::ClaimsArguments),
    /// Runs every combination of what is varied with many start phases, and compares
    Compare(compare::CompareArguments),
    /// Compares the runs of two files phase by phase: what differs, and how surely
    Diff(diff::DiffArguments),
    /// Says what a measure means, or lists all
    Explain {
        /// The measure's name
        name: Option<String>,
    },
    /// Writes what a board boots to run a system: the hypervisor, the system image and what U-Boot reads
    Board {
        #[command(flatten)]
        system: SystemArguments,
        /// The folder to write to, which need not be there yet
        #[arg(long, short = 'o', value_name = "FOLDER")]
        output: PathBuf,
        /// Writes an image of a whole disk too, with a partition that has them
        #[arg(long, value_name = "FILE")]
        disk: Option<PathBuf>,
        #[command(flatten)]
        hypervisor: HypervisorArgument,
    },
    /// Fetches and builds what Debian guests boot, unless it is there
    Images {
        /// Builds them even if they are there
        #[arg(long)]
        again: bool,
        /// Builds the compiler's disk, perf's and the Debian system too, which otherwise are built when a system names them
        #[arg(long)]
        all: bool,
        /// Writes a Debian system of your own to a new file: a root file system with systemd, apt, a login and an SSH server
        #[arg(long, value_name = "FILE")]
        rootfs: Option<PathBuf>,
        /// The size of that file; the file system grows to it when it boots
        #[arg(long, value_name = "SIZE", requires = "rootfs", value_parser = images::size)]
        size: Option<Bytes>,
    },
    /// Repeats a paper's tables and judges what came out
    Paper(paper::PaperArguments),
    /// Shows all hard claims of the papers beside what our results have for them
    Papers,
    /// Lists what can be written in a system file and said at the operator's prompt and to the exerciser
    Reference {
        /// Writes the JSON schema of system files instead, for editors
        #[arg(long)]
        schema: bool,
    },
    /// Repeats the runs of a report and compares digit by digit
    Rerun(rerun::RerunArguments),
    /// Refreshes the results that documents show, and makes their pages
    Results(results::ResultsArguments),
    /// Boots firmware and a kernel on the bare machine, or runs a bare-metal program
    Machine(Box<machine::front::Arguments>),
    /// Shows, checks and compares profiles: what a machine is like and what things cost on it
    Profile {
        #[command(subcommand)]
        what: profile::What,
    },
    /// Runs a system and shows what the performance monitor saw
    Run(RunArguments),
    /// Compares over a quantity, and finds where the conclusion turns over
    Sweep(sweep::SweepArguments),
    /// Shows who has the harts while a system runs on the machine
    Top(top::TopArguments),
    /// Records who had which hart when on the machine, and who spun on what
    Trace(trace::TraceArguments),
}

/// A system and the changes to it.
#[derive(Debug, clap::Args)]
struct SystemArguments {
    /// The system's TOML file
    #[arg(value_name = "SYSTEM.toml")]
    file: PathBuf,
    /// Changes a key for this time, such as vm.web.share=30; may be given many times
    ///
    /// The scheduler's keys are spin, wait, migration, scheduling, time-slice, round, affinity, self-wait-budget and
    /// reservation-limit, and translations says when cached translations are dropped; their limits are in docs/scheduling.md, and in what is said of a value that is out of them.
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

const RUN_EXAMPLES: &str = "Examples:
  partita run systems/two-debian.toml                      two Debian guests, to their end
  partita run systems/shell.toml --console debian          with a guest's console on this terminal
  partita run systems/terminals.toml --kvm                 the same guests and users under KVM, on the machine
  partita run experiments/paper-000/light.toml --profile mainframe-1994 --json report.json
                                                           figures that `partita rerun report.json` repeats";

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
struct RunArguments {
    #[command(flatten)]
    system: SystemArguments,
    /// The computer to run on
    #[arg(long, value_enum, default_value_t = Computer::Machine)]
    on: Computer,
    /// On the machine, what instructions and devices cost: the name of a profile that ships, or a TOML file. Without
    /// it, every instruction takes one cycle
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// On the machine, what everything random follows from
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// On the machine, looks for fences that the hypervisor or a guest leaves out: a use of a page whose translation
    /// has changed since the hart last used it, with no fence in between, fails the run. Slow
    #[arg(long)]
    check_translations: bool,
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
    /// On the machine, boots the first VM's kernel on the computer itself, with all of its harts and memory, its command
    /// line and its devices, and without the hypervisor
    #[arg(long, conflicts_with = "console")]
    native: bool,
    /// On the machine, runs every VM by QEMU and KVM on a Debian host in the hypervisor's place: the same kernels, disks,
    /// command lines and terminals
    #[arg(long, conflicts_with_all = ["console", "native"])]
    kvm: bool,
    /// Makes no native run beside this one. Otherwise, where the first VM's work is counted, er, cr and native-etr are
    /// computed from the same work by the first VM's kernel on the machine itself: a recorded run, else one that is made
    #[arg(long)]
    without_native: bool,
    /// Says what a measure means, instead of running
    #[arg(long, value_name = "NAME")]
    explain: Option<String>,
    /// Leaves out of the report what made it
    #[arg(long, hide = true)]
    without_makers: bool,
    /// On the machine, goes on from this checkpoint, which a comparison made
    #[arg(long, hide = true, value_name = "FILE", conflicts_with_all = ["console", "native", "check_translations", "monitor"])]
    checkpoint: Option<PathBuf>,
    /// Measures the steady part of the run alone, from when all VMs work to when the first ends: for systems whose VMs are all
    /// exercisers that work for a time
    #[arg(long, conflicts_with_all = ["console", "native", "kvm", "check_translations", "monitor", "checkpoint", "logs", "control"])]
    steady: bool,
    /// What the operator's prompt is asked for before anything is measured from the checkpoint
    #[arg(
        long = "command",
        hide = true,
        value_name = "COMMAND",
        requires = "checkpoint"
    )]
    commands: Vec<String>,
    /// The process without which this one is not wanted
    #[arg(long, hide = true, value_name = "ID")]
    parent: Option<u32>,
    /// Gives the run up after this much of the host's time; without it, after the system's time-limit, which on the
    /// machine is machine time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    #[command(flatten)]
    hypervisor: HypervisorArgument,
    /// Shows the firmware's lines too
    #[arg(long, short)]
    verbose: bool,
    /// Keeps each VM's lines in a file of its own in this folder, and the hypervisor's in partita.log
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["native", "kvm"])]
    logs: Option<PathBuf>,
    /// Makes a socket at which programs say what an operator says at the prompt, a command a line, and get a line of JSON for
    /// each. Where everybody waits, the run goes on then, as somebody may yet say something
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["console", "native", "kvm"])]
    control: Option<PathBuf>,
    /// Shows neither the guests' lines nor tables, but a summary of five lines
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
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
    /// Counts the passages through the hypervisor alone: instructions and cycles of exits and dispatches
    #[arg(long, conflicts_with_all = ["quick", "runs", "on"])]
    passages: bool,
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
#[derive(Debug, Clone, clap::Args)]
struct HypervisorArgument {
    /// The hypervisor's ELF file; without it, the one that `make build` built beside this command
    #[arg(long = "hypervisor", value_name = "FILE")]
    elf: Option<PathBuf>,
}

impl HypervisorArgument {
    /// Where it is.
    fn path(&self) -> Result<PathBuf, RunError> {
        let path = self
            .elf
            .clone()
            .unwrap_or_else(|| partita::run::default_hypervisor(&partita::installed::command()));
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
    /// The time limit: which, and who had not come to an end.
    #[error("the run took longer than it may and was ended: {0}")]
    TimeLimit(String),
    /// Nobody could go on.
    #[error(
        "everybody waited for what nobody could give, such as keys, and the system was powered off; with --console VM \
         the terminal is at that VM's console"
    )]
    Waiting,
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
    /// A profile.
    #[error(transparent)]
    Profile(#[from] machine::timing::ProfileError),
    /// Profiles with mistakes, which have been shown.
    #[error("{0} of the profiles cannot be used")]
    Profiles(usize),
    /// What the computer is to be like.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// An option for another computer.
    #[error("{0} is for the machine, and this run is on QEMU")]
    MachineOnly(&'static str),
    /// The benchmark.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// No such measure.
    #[error("{0}")]
    Measure(String),
    /// What is varied.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// The file of results.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A series of runs.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The file of claims.
    #[error(transparent)]
    Claims(#[from] partita::claims::ClaimsError),
    /// A paper's figures.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// Its registration.
    #[error(transparent)]
    Registration(#[from] partita::paper::registration::RegistrationError),
    /// Kept results.
    #[error(transparent)]
    Results(#[from] partita::results::ResultsError),
    /// A paper's runs.
    #[error(transparent)]
    Plan(PlanError),
    /// A key that stands for several.
    #[error(transparent)]
    Expand(ExpandError),
    /// Anything else in the laboratory.
    #[error("{0}")]
    Laboratory(String),
    /// What should be equal is not.
    #[error("{0}")]
    Different(String),
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
            Self::Mistakes(_) | Self::Profile(_) | Self::Profiles(_) => 1,
            Self::Computer(ComputerError::Profile(_)) => 1,
            Self::File { .. } | Self::NoPlace { .. } | Self::MachineOnly(_) | Self::Computer(_) => {
                2
            }
            Self::Measure(_)
            | Self::Grid(_)
            | Self::Laboratory(_)
            | Self::Plan(_)
            | Self::Expand(_) => 2,
            Self::Published(_) | Self::Claims(_) | Self::Registration(_) | Self::Results(_) => 5,
            Self::Different(_) => 3,
            Self::Store(_) => 5,
            Self::Series(_) => 130,
            Self::Vm(_) => 3,
            Self::TimeLimit(_) | Self::Waiting => 4,
            Self::Cache(_) | Self::Images(_) | Self::Run(_) | Self::Bench(_) => 5,
            Self::Interrupted => 130,
        })
    }
}

/// Does what was asked.
///
/// # Errors
/// Why it could not.
pub fn execute(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Machine(arguments) => return Ok(machine::front::run(&arguments)),
        Command::Bench(arguments) => bench::execute(&arguments),
        Command::Completions { shell } => shell::completions(shell),
        Command::Manual { folder } => shell::manual(&folder),
        Command::Check { system } => check::execute(&system),
        Command::Compare(arguments) => compare::execute(&arguments),
        Command::Diff(arguments) => diff::execute(&arguments),
        Command::Explain { name } => explain::execute(name.as_deref()),
        Command::Board {
            system,
            output,
            disk,
            hypervisor,
        } => board::execute(&system, &output, disk.as_deref(), &hypervisor),
        Command::Images {
            again,
            all,
            rootfs,
            size,
        } => images::execute(again, all, rootfs.as_deref(), size),
        Command::Claims(arguments) => claims::execute(&arguments),
        Command::Paper(arguments) => paper::execute(&arguments),
        Command::Papers => results::papers(),
        Command::Reference { schema } => reference::execute(schema),
        Command::Rerun(arguments) => rerun::execute(&arguments),
        Command::Results(arguments) => results::execute(&arguments),
        Command::Profile { what } => profile::execute(&what),
        Command::Run(arguments) => run::execute(&arguments),
        Command::Sweep(arguments) => sweep::execute(&arguments),
        Command::Top(arguments) => top::execute(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
    }
    .map(|()| ExitCode::SUCCESS)
}

impl SystemArguments {
    fn read(&self) -> Result<System, Failure> {
        let text = read_text(&self.file)?;
        let document = Document::new(&self.file, text, &self.changes)?;
        let system = System::read(&document)?;
        Mistakes::check(contents(&document, &system))?;
        Ok(system)
    }
}

impl From<ExpandError> for Failure {
    fn from(error: ExpandError) -> Self {
        match error {
            ExpandError::Point(error) => error.into(),
            error => Self::Expand(error),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Point(error) => error.into(),
            error => Self::Plan(error),
        }
    }
}

impl From<PointError> for Failure {
    fn from(error: PointError) -> Self {
        match error {
            PointError::Mistakes(mistakes) => Self::Mistakes(mistakes),
            PointError::File { path, error } => Self::File { path, error },
        }
    }
}

/// A system's text; `-` stands for standard input.
fn read_text(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).map_err(at(path));
    }
    std::fs::read_to_string(path).map_err(at(path))
}

/// A file's name without its ending.
fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
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
    output::write(path, &text)
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
