//! Computers that a system runs on: QEMU's board, and the machine in this process.
//!
//! Both have the same board, boot the same hypervisor and the same system image, and are seen from outside through the
//! same [`Computer`]: a console and an end. [`headless`] runs a system on the machine without a terminal, for whoever
//! wants figures alone.

mod board;
mod emulator;
pub mod headless;
mod line;
mod process;
mod simulator;

pub use ::machine::front::firmware;
pub use board::Chosen;
pub use process::Process;

use crate::cache::Cache;
use crate::image::slots::Assignment;
use crate::qemu::QemuError;
use crate::system::System;
use ::machine::MachineError;
use ::machine::device::virtio::DiskError;
use ::machine::monitor::Report as Monitor;
use ::machine::timing::ProfileError;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

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
    /// The profile.
    #[error("profile: {0}")]
    Profile(#[from] ProfileError),
    /// The machine.
    #[error("the machine: {0}")]
    Machine(#[from] MachineError),
    /// A disk.
    #[error("vm.{vm}.disks[{number}]: {error}")]
    Disk {
        /// Whose.
        vm: String,
        /// Which of its disks.
        number: usize,
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

/// Switches a computer on. What its console says goes to `output`, an empty piece at the end. With `interactive`,
/// somebody is at the console, and time on the machine does not run ahead of theirs.
///
/// # Errors
/// It cannot be switched on; nothing has happened then.
pub fn start(
    kind: &Kind,
    setup: &Setup<'_>,
    interactive: bool,
    output: Sender<Vec<u8>>,
) -> Result<Box<dyn Computer>, ComputerError> {
    match kind {
        Kind::Qemu => emulator::start(setup, output),
        Kind::Machine(chosen) => {
            let machine = board::build(setup, chosen)?;
            simulator::start(machine, interactive, output)
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ComputerError> {
    std::fs::read(path).map_err(|error| ComputerError::File {
        path: path.to_owned(),
        error,
    })
}
