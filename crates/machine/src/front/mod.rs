//! The command line: a computer with its console on the terminal.

mod arguments;
mod terminal;

pub use arguments::Arguments;
pub use terminal::Terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::board::Images;
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
    let profile = arguments.profile.as_deref().map(profile).transpose()?;
    let mut machine = Machine::new(configuration(arguments, profile.as_ref()))?;
    machine.set_profile(profile.as_ref());
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
    machine
        .system_mut()
        .devices
        .attach_console(Box::new(Terminal::new()));
    let begun = Instant::now();
    let limit = Limit {
        instructions: arguments.max_instructions,
        cycles: arguments.max_cycles,
    };
    let stop = machine.run(limit);
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
    Ok(exit_code(stop, &machine))
}

/// A profile by the name of one that ships, or from a file.
fn profile(name: &str) -> Result<Profile, FrontError> {
    let path = Path::new(name);
    if path.is_file() {
        let text = String::from_utf8_lossy(&read(path)?).into_owned();
        return Ok(Profile::parse(&text)?);
    }
    Ok(Profile::named(name)?)
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
    config.board.seed = arguments.seed;
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
        Stop::Limit | Stop::Idle => {
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
