//! Random programs of our IOMMU and of the reference model of its specification.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Runs random contexts, tables, accesses and commands on our IOMMU and on the reference model of the specification, and compares outcomes,
/// fault records, registers and memory. The exit code is 0 if all agree, 1 if one differs, 2 if nothing could be compared.
#[derive(Debug, Parser)]
#[command(name = "iommu")]
struct Arguments {
    /// The reference model, as `conformance/suites/iommu.py` builds it.
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Number of programs.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    programs: u64,
    /// Number of the first program.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many failures to describe.
    #[arg(long, value_name = "N", default_value_t = 10)]
    show: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut shown = 0;
    let programs = arguments.from..arguments.from + arguments.programs;
    let mut output = std::io::stdout();
    let tell = |number: u64, why: &str| {
        shown += 1;
        if shown <= arguments.show {
            let _ = writeln!(std::io::stdout(), "program {number}: {why}");
        }
    };
    match lockstep::iommu::run(&arguments.model, arguments.seed, programs, tell) {
        Ok(found) => {
            let _ = writeln!(
                output,
                "{} programs of {} commands and {} refusals with {} accesses beside model: {} differ",
                found.programs, found.commands, found.refused, found.accesses, found.differ
            );
            for (cause, records) in found.causes {
                let _ = writeln!(output, "cause {cause}: {records} records");
            }
            ExitCode::from(u8::from(found.differ != 0))
        }
        Err(error) => {
            let _ = writeln!(output, "the model cannot be run: {error}");
            ExitCode::from(2)
        }
    }
}
