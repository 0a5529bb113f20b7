//! Cost of the scheduler's decisions, in instructions of this computer, counted by valgrind's callgrind:
//! `cargo bench -p scheduler --bench cost`.
//!
//! `benches/cost/riscv` counts the same on RISC-V.

mod scenarios;

use std::error::Error;
use std::process::Command;

use scenarios::{Bench, SCENARIOS, SIZES};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Lengths whose difference is counted, in rounds: set-up and tear-down cancel out.
const LENGTHS: [u32; 2] = [1000, 3000];

/// Instructions of one run of this program.
fn counted(place: usize, size: usize, rounds: u32) -> Outcome<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["--run".to_owned(), place.to_string()])
        .args([size.to_string(), rounds.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.contains("Collected :"));
    let count = line.and_then(|line| line.rsplit(' ').next());
    Ok(count.ok_or_else(|| format!("callgrind: {text}"))?.parse()?)
}

fn run(arguments: &[String]) -> Outcome<()> {
    let [place, size, rounds] = arguments else {
        return Err("--run SCENARIO SIZE ROUNDS".into());
    };
    let (name, step) = SCENARIOS[place.parse::<usize>()?];
    let rounds = rounds.parse()?;
    let bench = Bench::new(step, SIZES[size.parse::<usize>()?]);
    let good = bench.ok_or("out of bounds")?.run(rounds);
    if good == rounds {
        Ok(())
    } else {
        Err(format!("{name}: {good} of {rounds} went as they should").into())
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--run") {
        return run(&arguments[at + 1..]);
    }
    print!("| instructions |");
    for (harts, vms, vcpus) in SIZES {
        print!(" {harts} harts, {} vCPUs |", vms * vcpus);
    }
    println!("\n|---|{}", "---|".repeat(SIZES.len()));
    for (place, (name, _)) in SCENARIOS.into_iter().enumerate() {
        print!("| {name} |");
        for size in 0..SIZES.len() {
            let [short, long] = LENGTHS.map(|rounds| counted(place, size, rounds));
            let each = (long? - short?) / u64::from(LENGTHS[1] - LENGTHS[0]);
            print!(" {each} |");
        }
        println!();
    }
    Ok(())
}
