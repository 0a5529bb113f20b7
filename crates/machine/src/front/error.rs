//! Errors of the command.

use std::path::PathBuf;

use super::firmware;
use crate::board::map::VIRTIO_SLOTS;
use crate::device::virtio::DiskError;
use crate::gdb::GdbError;
use crate::machine::MachineError;
use crate::timing::ProfileError;

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
    /// There is no firmware.
    #[error(transparent)]
    Firmware(#[from] firmware::NoFirmware),
    /// A file is none.
    #[error("{path}: {error}")]
    NotFirmware {
        /// The file.
        path: PathBuf,
        /// Description.
        error: firmware::NotFirmware,
    },
    /// Firmware alone comes to nothing.
    #[error(
        "there is nothing to boot: name a kernel with --kernel, a program with --bare, a checkpoint with --restore, or a \
         firmware of your own with --firmware"
    )]
    NothingToBoot,
    /// A disk cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// More devices than the board has slots.
    #[error("{0} devices: the board has {slots} slots; leave out a --disk, --network, --rng or --port", slots = VIRTIO_SLOTS)]
    Slots(usize),
    /// More functions than the bus of PCI has room for.
    #[error("too many devices on PCI: its bus has room for {room}; leave out a --pci-disk", room = crate::device::pci::SLOTS)]
    Functions,
    /// The host's system refuses something.
    #[error("{0}: {1}")]
    Host(&'static str, #[source] std::io::Error),
    /// A profile cannot be used.
    #[error("profile: {0}")]
    Profile(#[from] ProfileError),
    /// Timing mode without a profile.
    #[error("--mode timing needs a --profile that says what instructions cost")]
    NoProfile,
    /// The debugger.
    #[error(transparent)]
    Gdb(#[from] GdbError),
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
