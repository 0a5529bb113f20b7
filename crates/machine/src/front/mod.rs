//! The command line: a computer with its console on the terminal.

mod arguments;
mod terminal;

pub use arguments::{Arguments, GearChoice};
pub use terminal::Terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::board::Images;
use crate::checkpoint::{Marker, Point};
use crate::device::Console;
use crate::machine::{Config, Limit, Machine, MachineError, Stop};
use crate::timing::{Profile, ProfileError};

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A profile cannot be used.
    #[error("profile: {0}")]
    Profile(#[from] ProfileError),
    /// The measured gear without a profile.
    #[error("--gear measured needs a --profile that says what instructions cost")]
    NoProfile,
    /// A checkpoint cannot be written.
    #[error("cannot write the checkpoint {path}: {error}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Box<dyn std::error::Error>,
    },
    /// A checkpoint cannot be continued.
    #[error("cannot go on from {path}: {error}")]
    Restore {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Box<dyn std::error::Error>,
    },
    /// The computer cannot exist or cannot be loaded.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

fn read(path: &Path) -> Result<Vec<u8>, FrontError> {
    std::fs::read(path).map_err(|error| FrontError::Read {
        path: path.to_owned(),
        error,
    })
}

/// Carries out a command; prints what went wrong.
pub fn run(arguments: &Arguments) -> ExitCode {
    match execute(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("machine: {error}");
            ExitCode::from(2)
        }
    }
}

fn execute(arguments: &Arguments) -> Result<ExitCode, FrontError> {
    let profile = arguments
        .profile
        .as_deref()
        .map(Profile::find)
        .transpose()?;
    let mut machine = match &arguments.restore {
        Some(path) => restored(arguments, path, profile.as_ref())?,
        None => booted(arguments, profile.as_ref())?,
    };
    attach_console(&mut machine, arguments);
    if arguments.check_translations {
        machine.check_translations();
    }
    let begun = Instant::now();
    let stop = machine.run(limit(&machine, arguments));
    let output = machine.take_host_output();
    // Nothing can be done about a closed standard output.
    let _ = std::io::stdout().write_all(&output);
    if let Some(path) = &arguments.signature {
        write_signature(&mut machine, path)?;
    }
    if let Some(path) = &arguments.monitor {
        let text = serde_json::to_string_pretty(&machine.report()).unwrap_or_default();
        std::fs::write(path, text).map_err(|error| FrontError::Write {
            path: path.clone(),
            error,
        })?;
    }
    if arguments.statistics {
        print_statistics(&machine, begun);
    }
    if arguments.check_translations {
        let (found, count) = machine.stale_uses();
        for stale in &found {
            eprintln!("machine: stale: {stale}");
        }
        eprintln!("machine: {count} uses of translations without a fence");
    }
    if let Some(path) = &arguments.checkpoint
        && write_checkpoint(&mut machine, arguments, stop, path)?
    {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(exit_code(stop, &machine))
}

/// A machine with everything loaded.
fn booted(arguments: &Arguments, profile: Option<&Profile>) -> Result<Machine, FrontError> {
    let mut machine = Machine::new(configuration(arguments, profile))?;
    match arguments.gear {
        Some(GearChoice::Fast) => {}
        Some(GearChoice::Measured) if profile.is_none() => return Err(FrontError::NoProfile),
        _ => machine.set_profile(profile),
    }
    if let Some(program) = &arguments.bare {
        machine.load_bare(&read(program)?)?;
    } else {
        let firmware = read(&arguments.firmware)?;
        let kernel = arguments.kernel.as_deref().map(read).transpose()?;
        let initrd = arguments.initrd.as_deref().map(read).transpose()?;
        machine.load(&Images {
            firmware: &firmware,
            kernel: kernel.as_deref(),
            initrd: initrd.as_deref(),
        })?;
    }
    Ok(machine)
}

/// The machine of a checkpoint.
fn restored(
    arguments: &Arguments,
    path: &Path,
    profile: Option<&Profile>,
) -> Result<Machine, FrontError> {
    let refused = |error: Box<dyn std::error::Error>| FrontError::Restore {
        path: path.to_owned(),
        error,
    };
    let mut machine = Machine::restore(&read(path)?).map_err(|error| refused(error.into()))?;
    match (arguments.gear, profile) {
        (Some(GearChoice::Fast), _) => machine.set_profile(None),
        (Some(GearChoice::Measured), None) if machine.profile().is_none() => {
            return Err(FrontError::NoProfile);
        }
        (_, Some(profile)) => machine
            .shift_to_measured(profile)
            .map_err(|error| refused(error.into()))?,
        (_, None) => {}
    }
    if let Some(seed) = arguments.seed {
        machine.reseed(seed);
    }
    Ok(machine)
}

/// Puts the terminal at the end of the serial line.
fn attach_console(machine: &mut Machine, arguments: &Arguments) {
    let mut console: Box<dyn Console> = Box::new(Terminal::new());
    if let Some(Point::Text(text)) = &arguments.checkpoint_at {
        let marker = Marker::new(text);
        console = Box::new(marker.watch(console));
        machine.stop_at(marker);
    }
    machine.system_mut().devices.attach_console(console);
}

/// Where the run ends at the latest.
fn limit(machine: &Machine, arguments: &Arguments) -> Limit {
    let earlier = |limit: Option<u64>, point: u64| Some(limit.unwrap_or(u64::MAX).min(point));
    let mut limit = Limit {
        instructions: arguments.max_instructions,
        cycles: arguments.max_cycles,
    };
    match arguments.checkpoint_at {
        Some(Point::Cycles(at)) => limit.cycles = earlier(limit.cycles, at),
        Some(Point::Instructions(at)) => {
            let more = at.saturating_sub(machine.retired());
            limit.instructions = earlier(limit.instructions, more);
        }
        _ => {}
    }
    limit
}

/// Writes the checkpoint if its point has been reached.
fn write_checkpoint(
    machine: &mut Machine,
    arguments: &Arguments,
    stop: Stop,
    path: &Path,
) -> Result<bool, FrontError> {
    let reached = match arguments.checkpoint_at {
        None => stop == Stop::Limit,
        Some(Point::Cycles(at)) => stop == Stop::Limit && machine.now() >= at,
        Some(Point::Instructions(at)) => stop == Stop::Limit && machine.retired() >= at,
        Some(Point::Text(_)) => stop == Stop::Marker,
    };
    if !reached {
        eprintln!("machine: no checkpoint was written: the run ended before ({stop:?})");
        return Ok(false);
    }
    let refused = |error: Box<dyn std::error::Error>| FrontError::Checkpoint {
        path: path.to_owned(),
        error,
    };
    let file = std::fs::File::create(path).map_err(|error| refused(error.into()))?;
    machine
        .checkpoint(std::io::BufWriter::new(file))
        .map_err(|error| refused(error.into()))?;
    Ok(true)
}

fn configuration(arguments: &Arguments, profile: Option<&Profile>) -> Config {
    let mut config = Config::default();
    config.board.harts = arguments.harts;
    config.board.memory = arguments.memory << 20;
    if let Some(profile) = profile {
        config.use_profile(profile);
    }
    if let Some(guest_files) = arguments.guest_files {
        config.board.guest_files = guest_files;
    }
    config.board.bootargs.clone_from(&arguments.append);
    config.board.seed = arguments.seed.unwrap_or(0);
    config
}

/// Writes the signature as the architecture tests compare it: a line for each four bytes.
fn write_signature(machine: &mut Machine, path: &Path) -> Result<(), FrontError> {
    let mut text = String::new();
    for word in machine.signature().unwrap_or_default().chunks(4) {
        for byte in word.iter().rev() {
            text.push_str(&format!("{byte:02x}"));
        }
        text.push('\n');
    }
    std::fs::write(path, text).map_err(|error| FrontError::Write {
        path: path.to_owned(),
        error,
    })
}

fn print_statistics(machine: &Machine, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    let busy = processor_seconds().unwrap_or(seconds);
    let retired = machine.retired();
    eprintln!(
        "machine: {retired} instructions, {} cycles, {seconds:.3} s, {busy:.3} s of the host's \
         processor, {:.1} MIPS by the latter",
        machine.now(),
        retired as f64 / busy / 1e6
    );
}

/// Time that this thread has had the host's processor, which other load does not lengthen.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn exit_code(stop: Stop, machine: &Machine) -> ExitCode {
    match stop {
        Stop::PowerOff | Stop::Reset => ExitCode::SUCCESS,
        Stop::Exit(0) => ExitCode::SUCCESS,
        Stop::Exit(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX).max(1)),
        Stop::Limit | Stop::Idle | Stop::Marker => {
            let why = if stop == Stop::Idle {
                "nothing will ever happen"
            } else {
                "limit reached"
            };
            eprintln!("machine: {why}; the harts:");
            for hart in machine.harts() {
                eprintln!("{}", hart.describe());
            }
            ExitCode::from(3)
        }
    }
}
