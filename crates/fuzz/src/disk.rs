//! Disks of a case: filled with patterns before the run, checked after it.

use crate::case::{Case, GuestDisk, SHARED_DISK, SLICE_BYTES, WITNESS, own_disk};
use exerciser::pattern::Pattern;
use std::io;
use std::path::Path;

/// The part of the witness's slice that the witness writes, from its end: one in so many sectors.
const WRITTEN_PART: u64 = 4;

/// Bytes of a slice that the pattern of `key` fills.
fn filled(key: u64) -> Vec<u8> {
    let pattern = Pattern::new(key);
    let words = (0..SLICE_BYTES).step_by(8);
    words
        .flat_map(|offset| pattern.word(offset).to_le_bytes())
        .collect()
}

/// Writes the disks of a case into a folder.
///
/// # Errors
/// A file cannot be written.
pub fn make(case: &Case, folder: &Path) -> io::Result<()> {
    let mut shared = Vec::new();
    for (index, vm) in case.vms.iter().enumerate() {
        let slice = filled(case.disk_key(index));
        if matches!(vm.disk, Some(GuestDisk::General | GuestDisk::Fast)) {
            std::fs::write(folder.join(own_disk(&vm.name)), &slice)?;
        }
        shared.extend(slice);
    }
    std::fs::write(folder.join(SHARED_DISK), shared)
}

/// Finds sectors of the shared disk that changed although no guest may write them: all slices of VMs without one, and the part of the
/// witness's slice that the witness only reads.
///
/// # Errors
/// The file cannot be read.
pub fn changes(case: &Case, folder: &Path) -> io::Result<Vec<String>> {
    let shared = std::fs::read(folder.join(SHARED_DISK))?;
    let slices = shared.chunks(SLICE_BYTES as usize);
    let mut found = Vec::new();
    if slices.len() != case.vms.len() {
        found.push(format!("the shared disk has {} bytes", shared.len()));
    }
    for ((index, vm), slice) in case.vms.iter().enumerate().zip(slices) {
        let read_only = match (vm.name == WITNESS, vm.disk) {
            (true, Some(GuestDisk::Slice)) => SLICE_BYTES - SLICE_BYTES / WRITTEN_PART,
            (false, Some(GuestDisk::Slice)) => 0,
            _ => SLICE_BYTES,
        };
        let original = filled(case.disk_key(index));
        let mut words = slice.chunks(8).zip(original.chunks(8));
        let differs = words
            .position(|(now, then)| now != then)
            .map(|word| 8 * word as u64);
        if let Some(offset) = differs.filter(|offset| *offset < read_only) {
            found.push(format!("byte {offset} of the slice of {}", vm.name));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;

    /// A case in which the witness and another VM have slices.
    fn case() -> Case {
        let cases = (0..1000).map(|number| draw(1, number));
        let sliced = |case: &Case| {
            let slices = case.vms.iter();
            slices
                .filter(|vm| vm.disk == Some(GuestDisk::Slice))
                .count()
                > 1
                && case.witness().is_some_and(|vm| vm.disk.is_some())
        };
        cases.into_iter().find(sliced).unwrap()
    }

    fn write(folder: &Path, at: u64) {
        let path = folder.join(SHARED_DISK);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at as usize] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn foreign_writes_are_found() {
        let case = case();
        let folder = tempfile::tempdir().unwrap();
        make(&case, folder.path()).unwrap();
        assert_eq!(changes(&case, folder.path()).unwrap(), Vec::<String>::new());
        // The witness's last sector is its own to write, its first is not.
        write(folder.path(), SLICE_BYTES - 1);
        assert_eq!(changes(&case, folder.path()).unwrap(), Vec::<String>::new());
        write(folder.path(), 8);
        let found = changes(&case, folder.path()).unwrap();
        assert_eq!(found, ["byte 8 of the slice of witness"]);
    }
}
