//! Commands of the operator's prompt, parsed.

use crate::system::{HartId, HartSet, SHARE, SpinMethod, TlbPurge, VmId, VmName, WaitMethod};
use core::fmt;

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

/// Part of a VM's resources that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// At most so many vCPUs started at a time.
    Vcpus(u32),
    /// So many MiB of memory.
    Memory(u32),
}

/// Words for [`Resource`].
const RESOURCES: [&str; 2] = ["vcpus", "memory"];

/// A command of the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// List the VMs.
    List,
    /// Do something to a VM.
    Vm(VmAction, VmId),
    /// Let a VM use more or less of what it has.
    Resize(VmId, Resource),
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
    /// Print [`HELP`](super::HELP).
    Help,
}

/// Words behind `vm`.
const ACTIONS: [&str; 7] = [
    "list", "stop", "start", "restart", "pause", "resume", "resize",
];

/// Reason why a line is not a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError<'a> {
    /// Unknown command word.
    UnknownCommand(&'a str),
    /// The old name of a command.
    Renamed {
        /// The old name.
        old: &'static str,
        /// The name.
        new: &'static str,
    },
    /// A word is missing.
    Missing {
        /// Command word.
        command: &'static str,
        /// Arguments that the command takes.
        wanted: Wanted<'a>,
    },
    /// A word is not one of those that are known.
    Unexpected {
        /// Argument as typed.
        found: &'a str,
        /// Arguments that are accepted.
        wanted: Wanted<'a>,
    },
    /// More words than the command takes.
    Superfluous(&'a str),
}

/// Arguments that a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// One of these words.
    Word(&'static [&'static str]),
    /// The name of one of these VMs.
    Vm(&'a [VmName]),
    /// A share.
    Share,
    /// An argument in these words.
    Text(&'static str),
}

impl fmt::Display for CommandError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCommand(word) => {
                write!(f, "there is no command '{word}'; 'help' lists them")
            }
            Self::Renamed { old, new } => write!(f, "'{old}' is called '{new}' now"),
            Self::Missing { command, wanted } => write!(f, "'{command}' wants {wanted}"),
            Self::Unexpected { found, wanted } => write!(f, "'{found}' is not {wanted}"),
            Self::Superfluous(word) => write!(f, "'{word}' is too much at the end of the line"),
        }
    }
}

impl fmt::Display for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(words) => one_of(&mut words.iter().copied(), f),
            Self::Vm(names) => {
                f.write_str("the name of a VM: ")?;
                one_of(&mut names.iter().map(VmName::as_str), f)
            }
            Self::Share => write!(f, "a number from {} to {}", SHARE.start(), SHARE.end()),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Writes names as in `one, two or three`.
fn one_of(
    names: &mut dyn ExactSizeIterator<Item = &str>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let Some(first) = names.next() else {
        return f.write_str("there is none");
    };
    f.write_str(first)?;
    while let Some(name) = names.next() {
        f.write_str(if names.len() == 0 { " or " } else { ", " })?;
        f.write_str(name)?;
    }
    Ok(())
}

/// Reads a command. `names` are the VMs in the order of their numbers.
///
/// # Errors
/// [`CommandError`], which names what is accepted.
#[inline(never)]
pub fn parse<'a>(line: &'a str, names: &'a [VmName]) -> Result<Command, CommandError<'a>> {
    let mut words = Words {
        rest: line.split_ascii_whitespace(),
        names,
    };
    let command = match words.rest.next().unwrap_or("") {
        "vm" => {
            let place = words.word("vm", &ACTIONS)?;
            let name = ACTIONS.get(place).copied().unwrap_or_default();
            let action = match place {
                1 => VmAction::Stop,
                2 => VmAction::Start,
                3 => VmAction::Restart,
                4 => VmAction::Pause,
                5 => VmAction::Resume,
                6 => {
                    let vm = words.vm(name)?;
                    let resource = words.resource(name)?;
                    return words.end(Command::Resize(vm, resource));
                }
                _ => return words.end(Command::List),
            };
            Command::Vm(action, words.vm(name)?)
        }
        "stats" => Command::Stats,
        "share" => Command::Share(words.vm("share")?, words.share()?),
        "harts" => Command::Harts(words.vm("harts")?, words.harts()?),
        "spin" => Command::Spin(words.choice("spin", SpinMethod::WORDS, SpinMethod::ALL)?),
        "wait" => Command::Wait(words.choice("wait", WaitMethod::WORDS, WaitMethod::ALL)?),
        "tlb-purge" => {
            Command::TlbPurge(words.choice("tlb-purge", TlbPurge::WORDS, TlbPurge::ALL)?)
        }
        "ple" => Command::PauseLoops(words.vm("ple")?, words.cycles()?, words.cycles()?),
        "help" => Command::Help,
        "translations" => {
            let (old, new) = ("translations", "tlb-purge");
            return Err(CommandError::Renamed { old, new });
        }
        other => return Err(CommandError::UnknownCommand(other)),
    };
    words.end(command)
}

/// The words of a line that have not been read yet.
struct Words<'a> {
    rest: core::str::SplitAsciiWhitespace<'a>,
    names: &'a [VmName],
}

impl<'a> Words<'a> {
    /// The command, if no word is left.
    fn end(mut self, command: Command) -> Result<Command, CommandError<'a>> {
        match self.rest.next() {
            None => Ok(command),
            Some(word) => Err(CommandError::Superfluous(word)),
        }
    }

    /// The next word as `read` understands it.
    fn next<T>(
        &mut self,
        command: &'static str,
        wanted: Wanted<'a>,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, CommandError<'a>> {
        let found = self.rest.next();
        let found = found.ok_or(CommandError::Missing { command, wanted })?;
        read(found).ok_or(CommandError::Unexpected { found, wanted })
    }

    /// The place of the next word among `words`.
    fn word(
        &mut self,
        command: &'static str,
        words: &'static [&'static str],
    ) -> Result<usize, CommandError<'a>> {
        let place = |word: &str| words.iter().position(|other| *other == word);
        self.next(command, Wanted::Word(words), place)
    }

    /// The value that the next word stands for.
    fn choice<T: Copy>(
        &mut self,
        command: &'static str,
        words: &'static [&'static str],
        values: &'static [T],
    ) -> Result<T, CommandError<'a>> {
        let place = self.word(command, words)?;
        // A value stands for each word.
        let value = values.get(place).copied();
        value.ok_or(CommandError::UnknownCommand(command))
    }

    fn vm(&mut self, command: &'static str) -> Result<VmId, CommandError<'a>> {
        let names = self.names;
        let place = |word: &str| {
            let place = names.iter().position(|name| name.as_str() == word)?;
            u8::try_from(place).ok().map(VmId)
        };
        self.next(command, Wanted::Vm(names), place)
    }

    /// A set of harts, or `None` for the word `shared`.
    fn harts(&mut self) -> Result<Option<HartSet>, CommandError<'a>> {
        let wanted = Wanted::Text("'shared' or different harts, such as 2,3");
        self.next("harts", wanted, |word| {
            if word == "shared" {
                return Some(None);
            }
            let mut harts = HartSet::EMPTY;
            let all = word.split(',').all(|number| {
                let hart = number.parse().ok().map(HartId);
                hart.is_some_and(|hart| harts.insert(hart))
            });
            all.then_some(Some(harts))
        })
    }

    fn resource(&mut self, command: &'static str) -> Result<Resource, CommandError<'a>> {
        let place = self.word(command, &RESOURCES)?;
        let wanted = Wanted::Text(match place {
            0 => "a number of vCPUs, such as 2",
            _ => "a number of MiB, such as 256",
        });
        self.next(command, wanted, |word| {
            let amount = word.parse().ok().filter(|amount| *amount > 0)?;
            Some(match place {
                0 => Resource::Vcpus(amount),
                _ => Resource::Memory(amount),
            })
        })
    }

    fn cycles(&mut self) -> Result<u32, CommandError<'a>> {
        let wanted = Wanted::Text("a gap and a window in cycles, such as 128 4096");
        self.next("ple", wanted, |word| word.parse().ok())
    }

    fn share(&mut self) -> Result<u32, CommandError<'a>> {
        self.next("share", Wanted::Share, |word| {
            let share = word.parse().ok();
            share.filter(|share| SHARE.contains(share))
        })
    }
}
