//! The disks of a restored machine: the same ones, with the same contents.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::Xxh3;

use super::error::CheckpointError;
use crate::device::Devices;
use crate::device::virtio::{Disk, SECTOR, Version, VirtioDevice};
use crate::machine::{DiskIdentity, Machine};

/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// Why a disk cannot take the place of the one that the machine had.
#[derive(Debug, thiserror::Error)]
pub enum DiskMismatch {
    /// The machine misses no disk there.
    #[error("the machine in the checkpoint has no disk in slot {0}")]
    NoDisk(usize),
    /// It is not the same size.
    #[error("the disk for slot {slot} has not the size of the one that the machine had")]
    Size {
        /// The virtio slot.
        slot: usize,
    },
    /// It does not hold the same.
    #[error(
        "the disk for slot {slot} does not hold what it held when the checkpoint was written: \
         give the machine an unchanged copy"
    )]
    Contents {
        /// The virtio slot.
        slot: usize,
    },
    /// It cannot be read.
    #[error("the disk for slot {slot} cannot be read: {error}")]
    Read {
        /// The virtio slot.
        slot: usize,
        /// Error of the host.
        error: io::Error,
    },
}

/// The hashes of files that this process has read: many machines begin with the same disks, and to read those at both ends of
/// a short run would be half of its time.
static KNOWN: Mutex<BTreeMap<Version, u128>> = Mutex::new(BTreeMap::new());

/// A hash of all sectors, kept for as long as the file stays as it is.
fn hash(disk: &mut dyn Disk) -> io::Result<u128> {
    let before = disk.version();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = before.and_then(|version| known().get(&version).copied()) {
        return Ok(found);
    }
    let found = read(disk)?;
    if let Some(version) = before.filter(|_| disk.version() == before) {
        known().insert(version, found);
    }
    Ok(found)
}

/// The same, by reading all of them.
fn read(disk: &mut dyn Disk) -> io::Result<u128> {
    let size = disk.sectors().saturating_mul(SECTOR);
    let mut hasher = Xxh3::new();
    let mut bytes = vec![0; PIECE];
    let mut at = 0;
    while at < size {
        let piece = usize::try_from(size - at).map_or(PIECE, |left| left.min(PIECE));
        let bytes = bytes.get_mut(..piece).unwrap_or_default();
        disk.read(at, bytes)?;
        hasher.update(bytes);
        at += piece as u64;
    }
    Ok(hasher.digest128())
}

/// Which disks the devices have.
pub(super) fn identities(devices: &mut Devices) -> Result<Vec<DiskIdentity>, CheckpointError> {
    let mut found = Vec::new();
    for slot in 0..devices.places() {
        if let Some(VirtioDevice::Block(block)) = devices.virtio_mut(slot) {
            let hash =
                hash(block.disk_mut()).map_err(|error| CheckpointError::Disk { slot, error })?;
            found.push(DiskIdentity { slot, hash });
        }
    }
    Ok(found)
}

impl Machine {
    /// The virtio slots whose disks a restored machine has not been given yet. A request to such a
    /// disk fails.
    pub fn missing_disks(&self) -> impl Iterator<Item = usize> {
        self.missing_disks.iter().map(|identity| identity.slot)
    }

    /// Gives a restored machine one of its disks back.
    ///
    /// # Errors
    /// [`DiskMismatch`] if it is not the disk that the machine had, or has changed since.
    pub fn attach_disk(
        &mut self,
        slot: usize,
        mut disk: Box<dyn Disk>,
    ) -> Result<(), DiskMismatch> {
        let place = self
            .missing_disks
            .iter()
            .position(|identity| identity.slot == slot)
            .ok_or(DiskMismatch::NoDisk(slot))?;
        let Some(VirtioDevice::Block(block)) = self.system.devices.virtio_mut(slot) else {
            return Err(DiskMismatch::NoDisk(slot));
        };
        if disk.sectors() != block.sectors() {
            return Err(DiskMismatch::Size { slot });
        }
        let found = hash(&mut *disk).map_err(|error| DiskMismatch::Read { slot, error })?;
        if self.missing_disks.get(place).map(|identity| identity.hash) != Some(found) {
            return Err(DiskMismatch::Contents { slot });
        }
        block
            .attach(disk)
            .map_err(|_| DiskMismatch::Size { slot })?;
        self.missing_disks.remove(place);
        Ok(())
    }
}
