//! Computers that a system runs on: QEMU's board, and the machine in this process.
//!
//! Both have the same board, boot the same hypervisor and the same system image, and are seen from outside through the
//! same [`Computer`]: a console and an end. [`headless`] runs a system on the machine without a terminal, for whoever
//! wants figures alone.

pub(crate) mod board;
mod emulator;
pub(crate) mod line;
mod process;
pub(crate) mod simulator;
mod uplink;

pub use ::machine::front::firmware;
pub use board::{Chosen, Shift};
pub use process::Process;

use crate::qemu::QemuError;
use crate::storms::Storms;
use crate::terminals::Users;
use ::machine::MachineError;
use ::machine::device::virtio::DiskError;
use ::machine::monitor::Report as Monitor;
use ::machine::timing::ProfileError;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;
use system::System;
use system::cache::Cache;
use system::image::slots::Assignment;

/// What a computer is to boot.
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

/// Which computer.
#[derive(Debug, Clone)]
pub enum Kind {
    /// QEMU's virt board, in a process of its own.
    Qemu,
    /// The machine.
    Machine(Box<Chosen>),
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
    /// What is wrong with it, for people.
    pub failure: Option<String>,
    /// What the hardware monitor counted, on the machine.
    pub monitor: Option<Monitor>,
    /// What came of the pause-loop exits, on a machine that has them.
    pub storms: Option<Storms>,
    /// Those who sat at the guests' terminals, on the machine.
    pub users: Option<Users>,
    /// Why the computer itself asked for its end, if it did.
    pub early: Option<Early>,
}

/// Why a run ends before it has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Early {
    /// It has taken as long as it may.
    TimeLimit,
    /// Everybody waits for keys or the like, and none will come.
    Waiting,
}

/// The keys that ask the hypervisor to power everything off: escape (Ctrl-]), then `q`.
pub const POWER_OFF_KEYS: &[u8] = b"\x1dq";
/// How long an orderly end may take before the computer is switched off.
pub const GRACE: Duration = Duration::from_secs(10);

/// Who attends to a run, and for how long.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attendance {
    /// Keys may come at any time, until [`Computer::close_keys`].
    pub keys: bool,
    /// Somebody types them.
    pub person: bool,
    /// Machine time does not run ahead of the host's as long as keys may come: guests wait for what is typed with limits of
    /// their own, such as a login's.
    pub paced: bool,
    /// Machine time after which the machine is to be powered off. QEMU has no such time.
    pub time_limit: Option<Duration>,
}

/// What came over the console together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What; nothing at the end.
    pub bytes: Vec<u8>,
    /// When its last byte came, since the computer was switched on: machine time on the machine, else the host's.
    pub at: Duration,
}

/// Why a computer cannot be switched on.
#[derive(Debug, thiserror::Error)]
pub enum ComputerError {
    /// QEMU.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// The firmware.
    #[error(transparent)]
    Firmware(#[from] firmware::NoFirmware),
    /// A file is none.
    #[error("{path}: {error}", path = path.display())]
    NotFirmware {
        /// The file.
        path: PathBuf,
        /// What it is.
        error: firmware::NotFirmware,
    },
    /// The profile.
    #[error("profile: {0}")]
    Profile(#[from] ProfileError),
    /// The machine.
    #[error("the machine: {0}")]
    Machine(#[from] MachineError),
    /// A disk.
    #[error("{key}: {error}")]
    Disk {
        /// The key of its table in the system file.
        key: String,
        /// What is the matter.
        error: DiskError,
    },
    /// A checkpoint of another system, or a disk that has changed since.
    #[error(transparent)]
    Checkpoint(#[from] ::machine::checkpoint::DiskMismatch),
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        error: std::io::Error,
    },
    /// The host's system refuses something.
    #[error("{0}: {1}")]
    Host(&'static str, #[source] std::io::Error),
}

/// Switches a computer on. What its console says goes to `output`, an empty piece at the end.
///
/// # Errors
/// It cannot be switched on; nothing has happened then.
pub fn start(
    kind: &Kind,
    setup: &Setup<'_>,
    attendance: Attendance,
    output: Sender<Piece>,
) -> Result<Box<dyn Computer>, ComputerError> {
    match kind {
        Kind::Qemu => emulator::start(setup, output),
        Kind::Machine(chosen) => {
            let (machine, users) = board::build(setup, chosen)?;
            simulator::start(machine, users, attendance, chosen.later_check(), output)
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ComputerError> {
    std::fs::read(path).map_err(|error| ComputerError::File {
        path: path.to_owned(),
        error,
    })
}
