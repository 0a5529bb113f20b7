//! Random programs on this machine and on another implementation.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};
use lockstep::departures;
use lockstep::elf;
use lockstep::lockstep::{BATCH, Summary, image, make, run, trace};
use lockstep::oracle::{Oracle, Pair};
use lockstep::team;

/// Prints a line; whoever has stopped reading wants no more.
macro_rules! say {
    ($($arguments:tt)*) => {
        let _ = writeln!(std::io::stdout(), $($arguments)*);
    };
}

/// The implementation to compare with.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Other {
    /// qemu-system-riscv64.
    Qemu,
    /// spike, the RISC-V ISA simulator.
    Spike,
}

/// Runs random programs on this machine and on another implementation and compares registers,
/// CSRs, memory and traps. PARTITA_SEED repeats a run. The exit code is 0 if all programs agree or
/// differ by a known departure, 1 if one differs otherwise, 2 if nothing could be compared.
#[derive(Debug, Parser)]
#[command(name = "lockstep")]
struct Arguments {
    /// The implementation to compare with.
    #[arg(long, value_enum, default_value = "qemu")]
    with: Other,
    /// Number of programs.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    programs: u64,
    /// Number of the first program.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Seed of everything random; PARTITA_SEED, or else the time.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Finds the instruction with which this program departs.
    #[arg(long, value_name = "N")]
    trace: Option<u64>,
    /// Writes the programs with their harness as an ELF file, at most one batch, and runs nothing.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Programs for several harts whose outcome does not depend on who is first, instead.
    #[arg(long)]
    team: bool,
    /// Programs with vector instructions, and registers of so many bits: 128, 256, 512 or 1024.
    #[arg(long, value_name = "BITS", default_value_t = 0)]
    vectors: u16,
    /// Programs with landing pads, shadow stacks and double traps.
    #[arg(long)]
    control_flow: bool,
    /// How many failures to describe.
    #[arg(long, value_name = "N", default_value_t = 10)]
    show: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.or_else(from_environment).unwrap_or_else(now);
    say!("PARTITA_SEED={seed}");
    let oracle = match arguments.with {
        Other::Qemu => Oracle::Qemu,
        Other::Spike => Oracle::Spike,
    };
    let pair = Pair {
        oracle,
        vectors: arguments.vectors,
        control_flow: arguments.control_flow,
    };
    let to = arguments.from.saturating_add(arguments.programs);
    if let Some(path) = &arguments.save {
        let to = to.min(arguments.from.saturating_add(BATCH));
        let file = elf::write(&image(&make(seed, arguments.from, to, pair), pair.vectors));
        return match std::fs::write(path, file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("lockstep: cannot write {}: {error}", path.display());
                ExitCode::from(2)
            }
        };
    }
    if arguments.team {
        return match team::run(seed, arguments.from, to, oracle) {
            Ok(summary) => {
                for failure in summary.failures.iter().take(arguments.show) {
                    say!("{failure}");
                }
                say!(
                    "{} programs for several harts with {} exercises beside {}: {} differ",
                    summary.programs,
                    summary.exercises,
                    oracle.name(),
                    summary.failures.len()
                );
                ExitCode::from(u8::from(!summary.failures.is_empty()))
            }
            Err(error) => {
                eprintln!("lockstep: {error}");
                ExitCode::from(2)
            }
        };
    }
    let result = match arguments.trace {
        Some(number) => trace(seed, number, pair).map(|text| {
            say!("{text}");
            true
        }),
        None => run(seed, arguments.from, to, pair).map(|summary| {
            print(&summary, oracle, arguments.show);
            summary.failures.is_empty() && summary.programs > 0
        }),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::from(2)
        }
    }
}

fn from_environment() -> Option<u64> {
    std::env::var("PARTITA_SEED").ok()?.parse().ok()
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

fn print(summary: &Summary, oracle: Oracle, show: usize) {
    for failure in summary.failures.iter().take(show) {
        say!("{failure}");
    }
    say!(
        "{} programs with {} traps beside {}: {} differ",
        summary.programs,
        summary.traps,
        oracle.name(),
        summary.failures.len()
    );
    say!(
        "  {} went on with a value that a known departure had left in a register",
        summary.consequences
    );
    for (name, count) in &summary.departures {
        let section = departures::section(oracle, name);
        say!("  {count} by a known departure: {name} ({section})");
    }
}
