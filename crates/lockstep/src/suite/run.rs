//! Running programs, as many at a time as the host has processors.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use machine::base::VectorLength;
use machine::board::PmpEntries;
use machine::device::Script;
use machine::hart::{Hart, Wait};
use machine::timing::Profile;
use machine::translation::Paging;
use machine::{Config, Limit, Machine, Stop};
use serde::Serialize;

use super::program::Program;

/// How programs are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of harts.
    pub harts: u32,
    /// Bytes of RAM.
    pub memory: u64,
    /// Length of the vector registers; zero without a vector unit.
    pub vectors: VectorLength,
    /// PMP entries of each hart.
    pub pmp_entries: PmpEntries,
    /// When a program has failed that has not ended, in instructions of all harts.
    pub instructions: u64,
    /// The profile that runs are measured with; without one they run in the functional mode.
    pub profile: Option<Profile>,
    /// Programs at a time.
    pub threads: usize,
    /// Once this is set, nothing goes on.
    pub stop: Arc<AtomicBool>,
}

/// Instructions after which output is taken away and `stop` is looked at.
const SLICE: u64 = 20_000;
/// The same in cycles, for programs that wait or trap without end.
const SLICE_CYCLES: u64 = 1_000_000;
/// Cycles that an instruction may take on the average before its program counts as endless.
const CYCLES: u64 = 16;
/// Cycles that a program may wait besides: ten seconds.
const WAITING: u64 = 10_000_000_000;
/// Longest program file in bytes.
const LONGEST: u64 = 1 << 30;
/// Bytes of a program's output that are kept.
const MAX_OUTPUT: usize = 1 << 20;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "detail")]
pub enum Verdict {
    /// As it should.
    Passed,
    /// With a test that failed: the number that it told its host, or the finisher's code.
    Test(u64),
    /// Its signature is not the reference, in the line with this number from 1.
    Signature {
        /// The line.
        line: usize,
        /// Value of the reference.
        expected: String,
        /// Value that the program left.
        found: String,
    },
    /// Its output has a line that says so.
    Report(String),
    /// It did not end.
    Endless,
    /// It was not run to its end, because all was stopped.
    Stopped,
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
    /// Output to the host and the serial line.
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
    // Programs find out for themselves how wide addresses are, and some want all of them.
    Paging::Sv57
        .mmu_type()
        .clone_into(&mut config.board.isa.mmu);
    config.board.memory = settings.memory;
    config.board.isa.pmp_entries = settings.pmp_entries;
    config.board.isa.set_vector_length(settings.vectors);
    let length = std::fs::metadata(&program.file)
        .map_err(|error| error.to_string())?
        .len();
    if length > LONGEST {
        return Err(format!("it has {length} bytes; at most {LONGEST} are read"));
    }
    let bytes = std::fs::read(&program.file).map_err(|error| error.to_string())?;
    let mut machine = Machine::new(config).map_err(|error| error.to_string())?;
    machine.set_profile(settings.profile.as_ref());
    machine
        .load_bare(&bytes)
        .map_err(|error| error.to_string())?;
    let console = Script::default();
    let heard = console.output.clone();
    machine
        .system_mut()
        .devices
        .attach_console(Box::new(console));
    let mut output = Vec::new();
    let latest = settings
        .instructions
        .saturating_mul(CYCLES)
        .saturating_add(WAITING);
    let stop = loop {
        if settings.stop.load(Ordering::Relaxed) {
            break None;
        }
        let before = machine.retired();
        let left = settings.instructions.saturating_sub(before);
        let stop = machine.run(Limit {
            instructions: Some(left.min(SLICE)),
            cycles: Some(latest.min(machine.now().saturating_add(SLICE_CYCLES))),
        });
        let mut serial = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let said = machine
            .take_host_output()
            .into_iter()
            .chain(serial.drain(..));
        output.extend(said.take(MAX_OUTPUT - output.len()));
        // A program whose trap handler traps retires nothing, and does not wait either.
        let waits = |hart: &Hart| hart.wait != Wait::Nothing;
        let is_lost = machine.retired() == before && !machine.harts().iter().any(waits);
        let is_over = machine.retired() >= settings.instructions || machine.now() >= latest;
        if !matches!(stop, Stop::Limit) || is_over || is_lost {
            break Some(stop);
        }
    };
    let output = String::from_utf8_lossy(&output).into_owned();
    let Some(stop) = stop else {
        return Ok(Outcome {
            verdict: Verdict::Stopped,
            instructions: machine.retired(),
            output,
        });
    };
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

/// Runs all programs and gives their outcomes in the programs' order; tells how many are done, and
/// which was the last.
#[must_use]
pub fn run_all(
    programs: &[Program],
    settings: &Settings,
    progress: &(dyn Fn(usize, &Program) + Sync),
) -> Vec<Outcome> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes = Mutex::new(vec![None; programs.len()]);
    thread::scope(|scope| {
        for _ in 0..settings.threads.clamp(1, programs.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, program)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    programs.get(index).map(|program| (index, program))
                } {
                    let outcome = run(program, settings);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, program);
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
