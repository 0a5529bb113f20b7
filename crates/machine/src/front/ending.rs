//! Output at the end of a run.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use super::error::FrontError;
use crate::machine::{Machine, Stop};

/// The exit code when nothing has run.
pub(super) const NOT_STARTED: u8 = 125;
const LIMIT: u8 = 124;
const IDLE: u8 = 126;
const BROKEN_OFF: u8 = 130;

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The machine stopped.
    Stop(Stop),
    /// Somebody stopped it.
    BrokenOff,
}

/// Says how the run ended if it was not by itself.
pub(super) fn exit_code(ending: Ending, machine: &Machine) -> ExitCode {
    let stop = match ending {
        Ending::Stop(stop) => stop,
        Ending::BrokenOff => {
            eprintln!("machine: the run was broken off");
            return ExitCode::from(BROKEN_OFF);
        }
    };
    match stop {
        Stop::PowerOff | Stop::Reset | Stop::Exit(0) => ExitCode::SUCCESS,
        Stop::Exit(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Stop::Idle => {
            show_state("every hart waits, and nothing will ever wake one", machine);
            ExitCode::from(IDLE)
        }
        Stop::Stuck => {
            let why = "every hart traps at the first instruction of its trap handler, for ever";
            show_state(why, machine);
            ExitCode::from(IDLE)
        }
        Stop::Limit | Stop::Marker | Stop::Debugger => {
            show_state("the limit was reached", machine);
            ExitCode::from(LIMIT)
        }
    }
}

fn show_state(why: &str, machine: &Machine) {
    eprintln!("machine: {why}; the harts:");
    for hart in machine.harts() {
        eprintln!("{}", hart.describe());
    }
}

/// Finds out before a run whether a file can be written after it; what is in it stays.
pub(super) fn check_place(path: &Path) -> Result<(), FrontError> {
    let is_new = !path.exists();
    let tried = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    let tried = tried.and_then(|_| {
        if is_new {
            std::fs::remove_file(path)
        } else {
            Ok(())
        }
    });
    tried.map_err(|error| FrontError::Write {
        path: path.to_owned(),
        error,
    })
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), FrontError> {
    std::fs::write(path, text).map_err(|error| FrontError::Write {
        path: path.to_owned(),
        error,
    })
}

/// Writes the signature as the architecture tests compare it: a line for each four bytes.
pub(super) fn write_signature(machine: &mut Machine, path: &Path) -> Result<(), FrontError> {
    let mut text = String::new();
    for word in machine.signature().unwrap_or_default().chunks(4) {
        for byte in word.iter().rev() {
            text.push_str(&format!("{byte:02x}"));
        }
        text.push('\n');
    }
    write(path, &text)
}

pub(super) fn print_statistics(machine: &Machine, begun: &Beginning) {
    let seconds = begun.at.elapsed().as_secs_f64();
    let now = processor_seconds();
    let busy = now
        .zip(begun.busy)
        .map_or(seconds, |(now, then)| now - then);
    let retired = machine.retired() - begun.retired;
    eprintln!(
        "machine: {retired} instructions, {} cycles, {seconds:.3} s, {busy:.3} s of the host's \
         processor, {:.1} MIPS by the latter, {} MiB at most",
        machine.now() - begun.cycles,
        retired as f64 / busy / 1e6,
        peak_mebibytes().unwrap_or(0)
    );
}

/// How things stood when a run began.
#[derive(Debug)]
pub(super) struct Beginning {
    at: Instant,
    busy: Option<f64>,
    retired: u64,
    cycles: u64,
}

impl Beginning {
    /// How they stand now.
    pub(super) fn of(machine: &Machine) -> Self {
        Self {
            at: Instant::now(),
            busy: processor_seconds(),
            retired: machine.retired(),
            cycles: machine.now(),
        }
    }
}

/// The most memory of the host that this process has had at a time, in MiB.
fn peak_mebibytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes >> 10)
}

/// Time that this thread has had the host's processor, which other load does not lengthen.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}
