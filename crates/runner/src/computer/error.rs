//! Why a computer cannot be switched on.

use crate::qemu::QemuError;
use machine::MachineError;
use machine::device::virtio::DiskError;
use machine::front::firmware;
use machine::timing::ProfileError;
use std::path::{Path, PathBuf};

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
        /// Its description.
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
        /// The problem.
        error: DiskError,
    },
    /// More disks on PCI than its bus has room for.
    #[error("--pci-disk: the bus of PCI has no room for so many")]
    Functions,
    /// A checkpoint of another system, or a disk that has changed since.
    #[error(transparent)]
    Checkpoint(#[from] machine::checkpoint::DiskMismatch),
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// The host's system refuses something.
    #[error("{0}: {1}")]
    Host(&'static str, #[source] std::io::Error),
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, ComputerError> {
    std::fs::read(path).map_err(|error| ComputerError::File {
        path: path.to_owned(),
        error,
    })
}
