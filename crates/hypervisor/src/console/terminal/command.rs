//! Commands of the operator's prompt, parsed.

use alloc::string::String;
use alloc::vec::Vec;

use abi::system::{HartId, HartSet, SHARE, SpinMethod, TlbPurge, VmId, VmName, WaitMethod};

/// Text of `help`.
pub use abi::operator::HELP;

/// Command for one VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VmAction {
    /// Power it off.
    Stop,
    /// Boot it.
    Start,
    /// Power it off and boot it.
    Restart,
    /// Take its vCPUs off the harts.
    Pause,
    /// Resumes a paused VM.
    Resume,
}

/// The actions by name.
const ACTIONS: [(&str, VmAction); 5] = [
    ("stop", VmAction::Stop),
    ("start", VmAction::Start),
    ("restart", VmAction::Restart),
    ("pause", VmAction::Pause),
    ("resume", VmAction::Resume),
];

/// A command of the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// List the VMs.
    List,
    /// Do something to a VM.
    Vm(VmAction, VmId),
    /// Print the performance monitor's records.
    Stats,
    /// Set a VM's share of the shared harts.
    Share(VmId, u32),
    /// Give a VM these harts for itself, or let it share.
    Harts(VmId, Option<HartSet>),
    /// Set the method for spinning vCPUs.
    Spin(SpinMethod),
    /// Set the method for waiting vCPUs.
    Wait(WaitMethod),
    /// Set when cached translations of vCPUs are dropped.
    TlbPurge(TlbPurge),
    /// Set the gap and the window of a VM's pause loops, in cycles.
    PauseLoops(VmId, u32, u32),
    /// Print [`HELP`].
    Help,
}

/// Reason why a line is not a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Unknown command word.
    #[error("there is no command '{0}'; 'help' lists them")]
    UnknownCommand(String),
    /// The old name of a command.
    #[error("'{old}' is called '{new}' now")]
    Renamed {
        /// The old name.
        old: &'static str,
        /// The name.
        new: &'static str,
    },
    /// A word is missing.
    #[error("'{command}' wants {wanted}")]
    Missing {
        /// Command word.
        command: &'static str,
        /// Arguments that the command takes.
        wanted: String,
    },
    /// A word is not one of those that are known.
    #[error("'{found}' is not {wanted}")]
    Unexpected {
        /// Argument as typed.
        found: String,
        /// Arguments that are accepted.
        wanted: String,
    },
    /// More words than the command takes.
    #[error("'{0}' is too much at the end of the line")]
    Superfluous(String),
}

/// Reads a command. `names` are the VMs in the order of their numbers.
///
/// # Errors
/// [`CommandError`], which names what is accepted.
pub fn parse(line: &str, names: &[VmName]) -> Result<Command, CommandError> {
    let mut words = Words {
        rest: line.split_ascii_whitespace(),
        names,
    };
    let command = match words.rest.next().unwrap_or("") {
        "vm" => {
            let action = words.choose("vm", "list", &ACTIONS)?;
            match action {
                None => Command::List,
                Some((name, action)) => Command::Vm(action, words.vm(name)?),
            }
        }
        "stats" => Command::Stats,
        "share" => Command::Share(words.vm("share")?, words.share()?),
        "harts" => Command::Harts(words.vm("harts")?, words.harts()?),
        "spin" => Command::Spin(words.method("spin", SpinMethod::ALL, SpinMethod::name)?),
        "wait" => Command::Wait(words.method("wait", WaitMethod::ALL, WaitMethod::name)?),
        "tlb-purge" => {
            Command::TlbPurge(words.method("tlb-purge", TlbPurge::ALL, TlbPurge::name)?)
        }
        "ple" => Command::PauseLoops(words.vm("ple")?, words.cycles()?, words.cycles()?),
        "help" => Command::Help,
        "translations" => {
            let (old, new) = ("translations", "tlb-purge");
            return Err(CommandError::Renamed { old, new });
        }
        other => return Err(CommandError::UnknownCommand(other.into())),
    };
    match words.rest.next() {
        None => Ok(command),
        Some(word) => Err(CommandError::Superfluous(word.into())),
    }
}

/// The words of a line that have not been read yet.
struct Words<'a> {
    rest: core::str::SplitAsciiWhitespace<'a>,
    names: &'a [VmName],
}

impl<'a> Words<'a> {
    fn next(&mut self, command: &'static str, wanted: &str) -> Result<&'a str, CommandError> {
        self.rest.next().ok_or_else(|| CommandError::Missing {
            command,
            wanted: wanted.into(),
        })
    }

    /// One of `choices`, or `None` for the word `first`.
    fn choose<T: Copy>(
        &mut self,
        command: &'static str,
        first: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<(&'static str, T)>, CommandError> {
        let names: Vec<&str> = core::iter::once(first)
            .chain(choices.iter().map(|&(name, _)| name))
            .collect();
        let wanted = one_of(&names);
        let word = self.next(command, &wanted)?;
        if word == first {
            return Ok(None);
        }
        match choices.iter().find(|(name, _)| *name == word) {
            Some(&choice) => Ok(Some(choice)),
            None => Err(CommandError::Unexpected {
                found: word.into(),
                wanted,
            }),
        }
    }

    fn method<T: Copy>(
        &mut self,
        command: &'static str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<T, CommandError> {
        let names: Vec<&str> = all.iter().map(|&method| name(method)).collect();
        let wanted = one_of(&names);
        let word = self.next(command, &wanted)?;
        all.iter()
            .copied()
            .find(|&method| name(method) == word)
            .ok_or(CommandError::Unexpected {
                found: word.into(),
                wanted,
            })
    }

    fn vm(&mut self, command: &'static str) -> Result<VmId, CommandError> {
        let names: Vec<&str> = self.names.iter().map(VmName::as_str).collect();
        let wanted = alloc::format!("the name of a VM: {}", one_of(&names));
        let word = self.next(command, &wanted)?;
        names
            .iter()
            .position(|name| *name == word)
            .and_then(|index| u8::try_from(index).ok())
            .map(VmId)
            .ok_or(CommandError::Unexpected {
                found: word.into(),
                wanted,
            })
    }

    /// A set of harts, or `None` for the word `shared`.
    fn harts(&mut self) -> Result<Option<HartSet>, CommandError> {
        const WANTED: &str = "'shared' or different harts, such as 2,3";
        let word = self.next("harts", WANTED)?;
        if word == "shared" {
            return Ok(None);
        }
        let mut harts = HartSet::EMPTY;
        let all = word.split(',').all(|number| {
            let hart = number.parse().ok().map(HartId);
            hart.is_some_and(|hart| harts.insert(hart))
        });
        if all {
            Ok(Some(harts))
        } else {
            Err(CommandError::Unexpected {
                found: word.into(),
                wanted: WANTED.into(),
            })
        }
    }

    fn cycles(&mut self) -> Result<u32, CommandError> {
        let wanted = "a gap and a window in cycles, such as 128 4096";
        let word = self.next("ple", wanted)?;
        word.parse().map_err(|_| CommandError::Unexpected {
            found: word.into(),
            wanted: wanted.into(),
        })
    }

    fn share(&mut self) -> Result<u32, CommandError> {
        let wanted = alloc::format!("a number from {} to {}", SHARE.start(), SHARE.end());
        let word = self.next("share", &wanted)?;
        word.parse()
            .ok()
            .filter(|share| SHARE.contains(share))
            .ok_or(CommandError::Unexpected {
                found: word.into(),
                wanted,
            })
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "there is none".into(),
        [only] => (*only).into(),
        [first @ .., last] => alloc::format!("{} or {last}", first.join(", ")),
    }
}
