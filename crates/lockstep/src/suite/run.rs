//! Running programs, as many at a time as the host has processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use machine::device::Script;
use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};

use super::program::Program;

/// How programs are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of harts.
    pub harts: u32,
    /// Bytes of RAM.
    pub memory: u64,
    /// When a program has failed that has not ended, in instructions of all harts.
    pub instructions: u64,
    /// The profile that runs are measured with; without one they run in the fast gear.
    pub profile: Option<Profile>,
    /// Programs at a time.
    pub threads: usize,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As it should.
    Passed,
    /// With a test that failed: the number that it told its host, or the finisher's code.
    Test(u64),
    /// Its signature is not the reference, in the line with this number from 1.
    Signature {
        /// The line.
        line: usize,
        /// What the reference has there.
        expected: String,
        /// What the program left there.
        found: String,
    },
    /// Its output has a line that says so.
    Report(String),
    /// It did not end.
    Endless,
    /// It could not be run.
    Unusable(String),
}

/// A program's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// Instructions of all harts.
    pub instructions: u64,
    /// What it wrote to its host and its serial line.
    pub output: String,
}

/// The signature as the architecture tests compare it: a line for each four bytes.
fn signature_lines(bytes: &[u8]) -> Vec<String> {
    bytes
        .chunks(4)
        .map(|word| {
            word.iter()
                .rev()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        })
        .collect()
}

fn compare(found: &[String], reference: &str) -> Verdict {
    let expected: Vec<_> = reference.split_whitespace().collect();
    let nothing = String::new();
    for line in 0..found.len().max(expected.len()) {
        let (expected, found) = (
            expected.get(line).copied().unwrap_or(""),
            found.get(line).unwrap_or(&nothing),
        );
        if !expected.eq_ignore_ascii_case(found) {
            return Verdict::Signature {
                line: line + 1,
                expected: expected.to_owned(),
                found: found.clone(),
            };
        }
    }
    Verdict::Passed
}

/// The first line of a program's report in which it says itself that something failed.
fn complaint(output: &str) -> Option<&str> {
    output
        .lines()
        .find(|line| line.contains("FAILED") || line.contains("ERROR:"))
}

/// Runs a program.
#[must_use]
pub fn run(program: &Program, settings: &Settings) -> Outcome {
    execute(program, settings).unwrap_or_else(|reason| Outcome {
        verdict: Verdict::Unusable(reason),
        instructions: 0,
        output: String::new(),
    })
}

fn execute(program: &Program, settings: &Settings) -> Result<Outcome, String> {
    let mut config = Config::default();
    config.board.harts = settings.harts;
    config.board.memory = settings.memory;
    let bytes = std::fs::read(&program.file).map_err(|error| error.to_string())?;
    let mut machine = Machine::new(config).map_err(|error| error.to_string())?;
    machine.set_profile(settings.profile.as_ref());
    machine
        .load_bare(&bytes)
        .map_err(|error| error.to_string())?;
    let console = Script::default();
    let heard = console.heard.clone();
    machine
        .system_mut()
        .devices
        .attach_console(Box::new(console));
    let stop = machine.run(Limit {
        instructions: Some(settings.instructions),
        cycles: None,
    });
    let mut output = machine.take_host_output();
    output.extend(heard.lock().unwrap_or_else(PoisonError::into_inner).iter());
    let output = String::from_utf8_lossy(&output).into_owned();
    let verdict = match stop {
        Stop::PowerOff | Stop::Reset | Stop::Exit(0) => match &program.reference {
            Some(reference) => {
                let reference =
                    std::fs::read_to_string(reference).map_err(|error| error.to_string())?;
                let bytes = machine.signature().unwrap_or_default();
                compare(&signature_lines(&bytes), &reference)
            }
            None => complaint(&output).map_or(Verdict::Passed, |line| {
                Verdict::Report(line.trim().to_owned())
            }),
        },
        Stop::Exit(code) => Verdict::Test(code),
        _ => Verdict::Endless,
    };
    Ok(Outcome {
        verdict,
        instructions: machine.retired(),
        output,
    })
}

/// Runs all programs and gives their outcomes in the programs' order.
#[must_use]
pub fn run_all(programs: &[Program], settings: &Settings) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![None; programs.len()]);
    thread::scope(|scope| {
        for _ in 0..settings.threads.clamp(1, programs.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, program)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    programs.get(index).map(|program| (index, program))
                } {
                    let outcome = run(program, settings);
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(place) = outcomes.get_mut(index) {
                        *place = Some(outcome);
                    }
                }
            });
        }
    });
    let outcomes = outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    outcomes.into_iter().flatten().collect()
}
