//! Runs every program of a folder on the machine and prints a table.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use clap::Parser;
use lockstep::suite::{Known, Program, Settings, Table, find, run_all};
use machine::base::VectorLength;
use machine::board::PmpEntries;
use machine::timing::Profile;
use signal_hook::consts::{SIGINT, SIGTERM};

const EXAMPLES: &str = "\
Examples:
  make conformance SUITE=riscv-tests/isa
  make conformance SUITE=riscv-hyp-tests/build KNOWN=conformance/riscv-hyp-tests.known
  conformance riscv-tests/isa --only rv64ua-v --verbose
  conformance riscv-tests/isa --profile rocket-h --json results.json
  conformance vector-tests/256/programs --vectors 256

Where suites come from and how they are built: docs/reference/conformance.md.";

/// Runs every ELF program of a folder and of its folders on the machine, each by itself in M-mode.
///
/// A program passes when it ends with code 0 by HTIF's tohost or the test finisher, and no line of
/// its output says FAILED or ERROR:. If a file with its name and the ending .reference_output,
/// .signature or .sig lies beside it, its signature must be the same. The exit code is 0 if all pass
/// or fail as listed, 1 if one does not, 2 if nothing can be run, 130 if it was stopped by Ctrl-C:
/// the table then tells how far it came.
#[derive(Debug, Parser)]
#[command(name = "conformance", after_help = EXAMPLES)]
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
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory: u64,
    /// Harts with a vector unit whose registers have so many bits: 128, 256, 512 or 1024.
    #[arg(long, value_name = "BITS", default_value = "0", value_parser = vector_length)]
    vectors: VectorLength,
    /// PMP entries of each hart: 16 or 64.
    #[arg(long, value_name = "N", default_value = "16", value_parser = pmp_entries)]
    pmp_entries: PmpEntries,
    /// Instructions after which a program that has not ended has failed.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    max_instructions: u64,
    /// Runs in the timing mode with this profile, one of those that ship.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Programs at a time; as many as the host has processors, unless given.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Writes each program's verdict as JSON to this file, or with - instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Prints what programs wrote, and each program's verdict.
    #[arg(long)]
    verbose: bool,
}

/// A length of vector registers that there can be.
fn vector_length(text: &str) -> Result<VectorLength, String> {
    let length = text.parse().ok().and_then(VectorLength::new);
    length.ok_or_else(|| "use 128, 256, 512 or 1024, or 0 without vectors".to_owned())
}

/// A number of PMP entries that there can be.
fn pmp_entries(text: &str) -> Result<PmpEntries, String> {
    let entries = text.parse().ok().and_then(PmpEntries::new);
    entries.ok_or_else(|| "use 16 or 64".to_owned())
}

fn main() -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    let result = execute(&Arguments::parse(), &stop);
    match result {
        Ok(_) if stop.load(Ordering::Relaxed) => ExitCode::from(130),
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::from(2)
        }
    }
}

fn execute(arguments: &Arguments, stop: &Arc<AtomicBool>) -> Result<bool, String> {
    let known = match &arguments.known {
        Some(path) => Known::read(path).map_err(|error| error.to_string())?,
        None => Known::default(),
    };
    let folder = &arguments.folder;
    let cannot = |error| format!("cannot read {}: {error}", folder.display());
    let mut programs = find(folder).map_err(cannot)?;
    if programs.is_empty() {
        return Err(format!(
            "{}: there is no ELF program in it; are the suite's programs built?",
            folder.display()
        ));
    }
    if let Some(text) = &arguments.only {
        programs.retain(|program: &Program| program.name.contains(text));
        if programs.is_empty() {
            return Err(format!(
                "{}: no program's name contains `{text}`",
                folder.display()
            ));
        }
    }
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(stop))
            .map_err(|error| format!("signals: {error}"))?;
    }
    let profile = arguments.profile.as_deref().map(Profile::named);
    let settings = Settings {
        harts: arguments.harts,
        memory: arguments.memory << 20,
        vectors: arguments.vectors,
        pmp_entries: arguments.pmp_entries,
        instructions: arguments.max_instructions,
        profile: profile.transpose().map_err(|error| error.to_string())?,
        threads: match arguments.threads {
            Some(threads) => threads,
            None => available_parallelism().map_or(1, Into::into),
        },
        stop: Arc::clone(stop),
    };
    let is_watched = std::io::stderr().is_terminal();
    let count = programs.len();
    let outcomes = run_all(&programs, &settings, &|done, program| {
        if is_watched {
            let name: String = program.name.chars().take(60).collect();
            eprint!("\r\x1b[K{done} of {count}: {name}");
        }
    });
    if is_watched {
        eprint!("\r\x1b[K");
    }
    let mut text = String::new();
    if arguments.verbose {
        for (program, outcome) in programs.iter().zip(&outcomes) {
            text.push_str(&outcome.output);
            text.push_str(&format!("{}: {}\n", program.name, outcome.verdict));
        }
    }
    let table = Table::new(&programs, &outcomes, &known);
    let results = || table.json(&programs, &outcomes, &known);
    match arguments.json.as_deref() {
        Some(path) if path == Path::new("-") => text.push_str(&format!("{}\n", results())),
        Some(path) => {
            std::fs::write(path, results())
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            text.push_str(&table.to_string());
        }
        None => text.push_str(&table.to_string()),
    }
    // Whoever has stopped reading wants no more.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(table.is_good())
}
