//! Runs every program of a folder on the machine and prints a table.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use lockstep::suite::{Known, Program, Settings, Table, find, run_all};
use machine::timing::Profile;

/// Runs every ELF program of a folder and of its folders on the machine, each by itself in M-mode.
///
/// A program passes when it ends with code 0 by HTIF's tohost or the test finisher. If a file with
/// its name and the ending .reference_output, .signature or .sig lies beside it, its signature
/// must be the same. The exit code is 0 if all pass, 1 if one does not, 2 if nothing can be run.
#[derive(Debug, Parser)]
#[command(name = "conformance")]
struct Arguments {
    /// The folder.
    folder: PathBuf,
    /// Only programs whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// A list of programs that are expected to fail: lines of `name: reason`, where a * at the end
    /// of a name stands for anything. One that passes counts as a failure.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Number of harts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    harts: u32,
    /// RAM in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    memory: u64,
    /// Instructions after which a program that has not ended has failed.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    max_instructions: u64,
    /// Runs in the measured gear with this profile, one of those that ship.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Programs at a time; as many as the host has processors, unless given.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Prints what programs wrote, and each program's verdict.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    match execute(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::from(2)
        }
    }
}

fn execute(arguments: &Arguments) -> Result<bool, String> {
    let known = match &arguments.known {
        Some(path) => Known::read(path).map_err(|error| error.to_string())?,
        None => Known::default(),
    };
    let folder = &arguments.folder;
    let cannot = |error| format!("cannot read {}: {error}", folder.display());
    let mut programs = find(folder).map_err(cannot)?;
    if let Some(text) = &arguments.only {
        programs.retain(|program: &Program| program.name.contains(text));
    }
    if programs.is_empty() {
        return Err(format!("{}: there is no ELF program", folder.display()));
    }
    let profile = arguments.profile.as_deref().map(Profile::named);
    let settings = Settings {
        harts: arguments.harts,
        memory: arguments.memory << 20,
        instructions: arguments.max_instructions,
        profile: profile.transpose().map_err(|error| error.to_string())?,
        threads: match arguments.threads {
            Some(threads) => threads,
            None => available_parallelism().map_or(1, Into::into),
        },
    };
    let outcomes = run_all(&programs, &settings);
    if arguments.verbose {
        for (program, outcome) in programs.iter().zip(&outcomes) {
            print!("{}", outcome.output);
            println!("{}: {}", program.name, outcome.verdict);
        }
    }
    let table = Table::new(&programs, &outcomes, &known);
    print!("{table}");
    Ok(table.is_good())
}
