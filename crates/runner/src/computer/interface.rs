//! Computers as a run sees them: what they boot, a console, an end.

use crate::storms::Storms;
use crate::terminals::Users;
use machine::monitor::Report as Monitor;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;
use system::System;
use system::cache::Cache;
use system::image::slots::Assignment;

/// Inputs of a boot.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The system.
    pub system: &'a System,
    /// Where its devices are.
    pub slots: &'a Assignment,
    /// Its image.
    pub image: &'a [u8],
    /// The hypervisor's ELF file.
    pub hypervisor: &'a Path,
    /// Where the files are that the system names as built.
    pub cache: &'a Cache,
}

/// A computer that was switched on.
pub trait Computer: Debug {
    /// Sends keys to the console. A computer that has ended takes none, and that shows elsewhere.
    fn send(&mut self, keys: &[u8]);

    /// No keys will come any more.
    fn close_keys(&mut self) {}

    /// Switches it off if `kill`, or waits for the end that it comes to.
    ///
    /// # Errors
    /// The host's system does not say how it ended.
    fn end(self: Box<Self>, kill: bool) -> std::io::Result<End>;
}

/// How a computer ended.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// The failure, for people.
    pub failure: Option<String>,
    /// Report of the machine's hardware monitor.
    pub monitor: Option<Monitor>,
    /// Accounts of the pause-loop exits, on a machine that has them.
    pub storms: Option<Storms>,
    /// Users at the guests' terminals, on the machine.
    pub users: Option<Users>,
    /// Why the computer itself asked for its end, if it did.
    pub early: Option<Early>,
}

/// Why a run ends before it has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Early {
    /// The run has taken as long as it may.
    TimeLimit,
    /// All guests wait for keys or the like, and none will come.
    Waiting,
}

/// The keys that ask the hypervisor to power everything off: escape (Ctrl-]), then `q`.
pub const POWER_OFF_KEYS: &[u8] = b"\x1dq";
/// How long an orderly end may take before the computer is switched off.
pub const GRACE: Duration = Duration::from_secs(10);

/// Attendance at a run: keys, a person, a time limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attendance {
    /// Keys may come at any time, until [`Computer::close_keys`].
    pub keys: bool,
    /// A person types them.
    pub person: bool,
    /// Machine time does not run ahead of the host's as long as keys may come: guests wait for what is typed with limits of
    /// their own, such as a login's.
    pub paced: bool,
    /// Machine time after which the machine is to be powered off. QEMU has no such time.
    pub time_limit: Option<Duration>,
}

/// Bytes of the console that came together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The bytes; empty at the end.
    pub bytes: Vec<u8>,
    /// When its last byte came, since the computer was switched on: machine time on the machine, else the host's.
    pub at: Duration,
}
