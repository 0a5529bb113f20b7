//! Errors of checkpoints.

use std::io;

use crate::machine::MachineError;

/// Why a checkpoint cannot be written or continued.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file does not begin as a checkpoint does.
    #[error("this is no checkpoint of the machine")]
    Foreign,
    /// Another version of the machine wrote it.
    #[error(
        "the checkpoint has version {found} and this machine reads version {expected}: \
         write it again with this machine"
    )]
    Version {
        /// The file's version.
        found: u32,
        /// The version that can be read.
        expected: u32,
    },
    /// The checksum does not match the contents.
    #[error("the checkpoint is damaged or cut short: its checksum does not match")]
    Damaged,
    /// The checksum matches, but the contents cannot be a machine's.
    #[error("the checkpoint cannot be a machine's state: {0}")]
    Impossible(&'static str),
    /// The computer in it cannot exist here.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The file cannot be read.
    #[error("the checkpoint cannot be read: {0}")]
    Read(io::Error),
    /// The file cannot be written.
    #[error("the checkpoint cannot be written: {0}")]
    Write(#[from] io::Error),
    /// A disk cannot be read to identify it.
    #[error("the disk in slot {slot} cannot be read: {error}")]
    Disk {
        /// Its virtio slot.
        slot: usize,
        /// Error of the host.
        error: io::Error,
    },
}
