//! The command line: what can be asked for, and what the exit code says.

mod bench;
mod beside;
mod board;
mod check;
mod claims;
mod compare;
mod ctl;
mod diff;
mod doctor;
mod explain;
mod failure;
mod footprint;
mod fuzz;
mod images;
mod input;
mod laboratory;
mod output;
mod paper;
mod profile;
mod random;
mod reference;
mod renamed;
mod rerun;
mod results;
mod run;
mod shell;
mod submit;
mod sweep;
mod top;
mod trace;

use clap::{CommandFactory, Parser, Subcommand};
use failure::EXIT_CODES;
pub use failure::Failure;
use input::SystemArguments;
pub use output::{note, show_usage};
pub use renamed::with_present_name;
use std::path::PathBuf;
use std::process::ExitCode;
use system::Bytes;

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
    Bench(bench::BenchArguments),
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
        /// Finds methods too that this hypervisor was built without; a product's build has the default ones and the papers' best
        #[arg(long, value_name = "FILE")]
        hypervisor: Option<PathBuf>,
        /// Checks as well that harts with this profile have the vectors that VMs need: the name of a profile that ships, or a TOML file
        #[arg(long, value_name = "NAME|FILE")]
        profile: Option<String>,
    },
    /// Shows what the policies are claimed to do, claim by claim
    Claims(claims::ClaimsArguments),
    /// Runs every combination of what is varied with many start phases, and compares
    Compare(compare::CompareArguments),
    /// Asks a run that has a control socket: commands of the operator's prompt, events, power-off
    Ctl(ctl::CtlArguments),
    /// Compares the runs of two files phase by phase: what differs, and how surely
    Diff(diff::DiffArguments),
    /// Says what this computer has and lacks, and what to do about it
    Doctor(doctor::DoctorArguments),
    /// Says what a measure means, or lists all
    Explain {
        /// The measure's name
        name: Option<String>,
    },
    /// Shows where the code of the hypervisor, or of another program, goes by crate and module
    Footprint(footprint::FootprintArguments),
    /// Runs hostile systems drawn from a seed, and judges each run from outside
    Fuzz(fuzz::FuzzArguments),
    /// Writes what a board boots to run a system, or describes a board
    Board(board::BoardArguments),
    /// Fetches and builds what Debian guests boot, unless it is there
    Images {
        /// Builds them even if they are there
        #[arg(long)]
        rebuild: bool,
        /// Builds the compiler's disk, perf's, OpenSSL's and the Debian system too, which otherwise are built when a system names them
        #[arg(long)]
        all: bool,
        /// Writes a Debian system of your own to a new file: a root file system with systemd, apt, a login and an SSH server
        #[arg(long, value_name = "FILE")]
        rootfs: Option<PathBuf>,
        /// The size of that file; the file system grows to it when it boots
        #[arg(long, value_name = "SIZE", requires = "rootfs", value_parser = images::size)]
        size: Option<Bytes>,
        /// Writes the names, versions and hashes of the packages that the images were made of, as guests/packages has them
        #[arg(long, value_name = "FILE", conflicts_with = "rootfs")]
        packages: Option<PathBuf>,
    },
    /// Repeats a paper's tables and judges what came out; with --all shows all claims of all papers
    Paper(Box<paper::PaperArguments>),
    /// Former word for `paper --all`
    #[command(hide = true)]
    Papers {
        /// Words that followed it
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<std::ffi::OsString>,
    },
    /// Lists what can be written in a system file and said at the operator's prompt and to the exerciser
    Reference {
        /// Writes the JSON schema of system files instead, for editors
        #[arg(long)]
        schema: bool,
        /// Writes the JSON schema of the control socket instead, for programs
        #[arg(long, conflicts_with = "schema")]
        control: bool,
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
    Run(run::RunArguments),
    /// Writes what a cluster's scheduler makes a series by: a SLURM array, or Jobs of Kubernetes
    Submit(submit::SubmitArguments),
    /// Compares over a quantity, and finds where the conclusion turns over
    Sweep(sweep::SweepArguments),
    /// Shows who has the harts while a system runs on the machine
    Top(top::TopArguments),
    /// Records who had which hart when on the machine, and who spun on what
    Trace(trace::TraceArguments),
}

/// Does what was asked.
///
/// # Errors
/// Why it could not.
pub fn execute(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Machine(arguments) => return Ok(machine::front::run(&arguments)),
        Command::Bench(arguments) => bench::execute(&arguments),
        Command::Completions { shell } => shell::completions(shell, Arguments::command()),
        Command::Manual { folder } => shell::manual(&folder, Arguments::command()),
        Command::Check {
            system,
            hypervisor,
            profile,
        } => check::execute(&system, hypervisor.as_deref(), profile.as_deref()),
        Command::Compare(arguments) => compare::execute(&arguments),
        Command::Ctl(arguments) => ctl::execute(&arguments),
        Command::Diff(arguments) => diff::execute(&arguments),
        Command::Doctor(arguments) => doctor::execute(&arguments),
        Command::Explain { name } => explain::execute(name.as_deref()),
        Command::Footprint(arguments) => footprint::execute(&arguments),
        Command::Fuzz(arguments) => fuzz::execute(&arguments),
        Command::Board(arguments) => board::execute(&arguments),
        Command::Images {
            rebuild,
            all,
            rootfs,
            size,
            packages,
        } => images::execute(rebuild, all, rootfs.as_deref(), size, packages.as_deref()),
        Command::Claims(arguments) => claims::execute(&arguments),
        Command::Paper(arguments) if arguments.all => results::papers(&arguments),
        Command::Paper(arguments) => paper::execute(&arguments),
        Command::Papers { .. } => Err(Failure::Usage(String::from(
            "the command papers is called `paper --all` now",
        ))),
        Command::Reference { schema, control } => reference::execute(schema, control),
        Command::Rerun(arguments) => rerun::execute(&arguments),
        Command::Results(arguments) => results::execute(&arguments),
        Command::Profile { what } => profile::execute(&what),
        Command::Run(arguments) => run::execute(&arguments),
        Command::Submit(arguments) => submit::execute(&arguments, system_file_of),
        Command::Sweep(arguments) => sweep::execute(&arguments),
        Command::Top(arguments) => top::execute(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
    }
    .and_then(|()| output::shown())
    .map(|()| ExitCode::SUCCESS)
}

/// The system file of a series that these words are, if it has one.
///
/// # Errors
/// They are no series.
fn system_file_of(words: &[String]) -> Result<Option<PathBuf>, Failure> {
    let program = String::from("partita");
    let parsed = Arguments::try_parse_from(std::iter::once(&program).chain(words));
    let parsed = parsed.map_err(|error| {
        let text = error.to_string();
        Failure::Usage(String::from(text.trim_start_matches("error: ").trim()))
    })?;
    match parsed.command {
        Command::Compare(arguments) => Ok(arguments.file),
        Command::Sweep(arguments) => Ok(Some(arguments.file().clone())),
        _ => Err(Failure::Usage(String::from(
            "a cluster makes a series: give compare or sweep with its arguments behind --",
        ))),
    }
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
