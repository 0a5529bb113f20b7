//! The command line: a computer with its console on the terminal.

mod arguments;
mod board;
mod ending;
mod error;
pub mod firmware;
mod follow;
mod pace;
mod raw;
mod terminal;

pub use arguments::{Arguments, ModeChoice};
pub use error::FrontError;
pub use pace::{INTERVAL, Pace};
pub use raw::{RawTerminal, end_by};
pub use terminal::Terminal;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::board::Images;
use crate::checkpoint::{CheckpointError, Marker, Point};
use crate::device::Silent;
use crate::gdb;
use crate::machine::{Limit, Machine, Stop};
use crate::timing::Profile;
use crate::trace::Timeline;

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
            ExitCode::from(ending::NOT_STARTED)
        }
    }
}

fn execute(arguments: &Arguments) -> Result<ExitCode, FrontError> {
    if [
        &arguments.kernel,
        &arguments.bare,
        &arguments.restore,
        &arguments.firmware,
    ]
    .iter()
    .all(|file| file.is_none())
    {
        return Err(FrontError::NothingToBoot);
    }
    let outputs = [
        &arguments.monitor,
        &arguments.trace,
        &arguments.signature,
        &arguments.checkpoint,
    ];
    for path in outputs.into_iter().flatten() {
        ending::check_place(path)?;
    }
    let profile = arguments
        .profile
        .as_deref()
        .map(Profile::find)
        .transpose()?;
    let mut machine = match &arguments.restore {
        Some(path) => restored(arguments, path, profile.as_ref())?,
        None => booted(arguments, profile.as_ref())?,
    };
    let stop = follow::Stopper::new(arguments.timeout)?;
    let raw = follow::raw_terminal(arguments)?;
    attach_console(&mut machine, arguments, &stop);
    if arguments.interpret {
        machine.interpret_all();
    }
    if arguments.check_translations {
        machine.check_translations();
    }
    if let Some(path) = &arguments.trace {
        listen(&mut machine, path)?;
    }
    let begun = ending::Beginning::of(&machine);
    let limit = limit(&machine, arguments);
    let ending = match arguments.gdb {
        Some(port) => {
            let ready = |port| eprintln!("machine: waiting for gdb: target remote :{port}");
            match gdb::serve(&mut machine, port, limit, ready)? {
                Some(stop) => ending::Ending::Stop(stop),
                None => return Ok(ExitCode::SUCCESS),
            }
        }
        None => follow::follow(&mut machine, limit, &stop),
    };
    follow::show_host_output(&mut machine);
    // What the terminal has not shown yet comes before what is said about the end.
    machine
        .system_mut()
        .devices
        .attach_console(Box::new(Silent));
    drop(raw);
    if let Some(path) = &arguments.trace {
        machine
            .stop_listening()
            .map_err(|error| unwritten(path, error))?;
    }
    if let Some(path) = &arguments.signature {
        ending::write_signature(&mut machine, path)?;
    }
    if let Some(path) = &arguments.monitor {
        let text = serde_json::to_string_pretty(&machine.report()).unwrap_or_default();
        ending::write(path, &text)?;
    }
    if arguments.statistics {
        ending::print_statistics(&machine, &begun);
    }
    if arguments.check_translations {
        let (found, count) = machine.stale_uses();
        for stale in &found {
            eprintln!("machine: stale: {stale}");
        }
        eprintln!("machine: {count} uses of translations without a fence");
    }
    if let Some(path) = &arguments.checkpoint
        && let ending::Ending::Stop(stop) = ending
        && write_checkpoint(&mut machine, arguments, stop, path)?
    {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ending::exit_code(ending, &machine))
}

/// A machine with everything loaded.
fn booted(arguments: &Arguments, profile: Option<&Profile>) -> Result<Machine, FrontError> {
    let mut machine = Machine::new(board::configuration(arguments, profile))?;
    match arguments.mode {
        Some(ModeChoice::Functional) => {}
        Some(ModeChoice::Timing) if profile.is_none() => return Err(FrontError::NoProfile),
        _ => machine.set_profile(profile),
    }
    board::connect(&mut machine, arguments, profile)?;
    if let Some(program) = &arguments.bare {
        machine.load_bare(&read(program)?)?;
    } else {
        let firmware = match &arguments.firmware {
            Some(path) => path.clone(),
            None => firmware::find()?,
        };
        let path = firmware;
        let firmware = read(&path)?;
        firmware::check(&firmware).map_err(|error| FrontError::NotFirmware { path, error })?;
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
    let file = std::fs::File::open(path).map_err(|error| refused(error.into()))?;
    let mut machine = Machine::restore_file(&file).map_err(|error| refused(error.into()))?;
    match (arguments.mode, profile) {
        (Some(ModeChoice::Functional), _) => machine.set_profile(None),
        (Some(ModeChoice::Timing), None) if machine.profile().is_none() => {
            return Err(FrontError::NoProfile);
        }
        (_, Some(profile)) => machine
            .continue_with_profile(profile)
            .map_err(|error| refused(error.into()))?,
        (_, None) => {}
    }
    board::attach_disks(&mut machine, arguments).map_err(refused)?;
    if let Some(seed) = arguments.seed {
        machine.reseed(seed);
    }
    Ok(machine)
}

/// Writes a timeline from now on.
fn listen(machine: &mut Machine, path: &Path) -> Result<(), FrontError> {
    let file = std::fs::File::create(path).map_err(|error| unwritten(path, error))?;
    let timeline = Timeline::new(std::io::BufWriter::new(file), machine.clock());
    machine.listen(Box::new(timeline));
    Ok(())
}

fn unwritten(path: &Path, error: std::io::Error) -> FrontError {
    FrontError::Write {
        path: path.to_owned(),
        error,
    }
}

/// Puts the terminal at the end of the serial line, and makes the run stop where a text is shown.
fn attach_console(machine: &mut Machine, arguments: &Arguments, stop: &follow::Stopper) {
    let console = if follow::is_person(arguments) {
        Terminal::for_person(stop.flag())
    } else {
        Terminal::new()
    };
    machine
        .system_mut()
        .devices
        .attach_console(Box::new(console));
    if let Some(Point::Text(text)) = &arguments.checkpoint_at {
        machine.stop_at(Marker::new(text));
    }
}

/// Where the run ends at the latest.
fn limit(machine: &Machine, arguments: &Arguments) -> Limit {
    let earlier = |limit: Option<u64>, point: u64| Some(limit.unwrap_or(u64::MAX).min(point));
    let mut limit = Limit {
        instructions: arguments.max_instructions,
        cycles: arguments.max_cycles,
    };
    if let Some(time) = arguments.max_time {
        let nanoseconds = time.0.saturating_mul(1000);
        let at = machine
            .config()
            .board
            .clock
            .cycles_in_nanoseconds(nanoseconds);
        limit.cycles = earlier(limit.cycles, at.0);
    }
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
    write_beside(machine, path).map_err(|error| refused(error.into()))?;
    Ok(true)
}

/// Writes a checkpoint to a file of its own, which then takes the name: the machine's memory may be mapped from
/// the file that has it now.
fn write_beside(machine: &mut Machine, path: &Path) -> Result<(), CheckpointError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = PathBuf::from(name);
    let written = std::fs::File::create_new(&new)
        .map_err(CheckpointError::Write)
        .and_then(|file| machine.checkpoint(std::io::BufWriter::new(file)));
    let renamed =
        written.and_then(|()| std::fs::rename(&new, path).map_err(CheckpointError::Write));
    if renamed.is_err() {
        // What is left of it is of no use.
        let _ = std::fs::remove_file(&new);
    }
    renamed
}
