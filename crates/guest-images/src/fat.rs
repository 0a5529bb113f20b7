//! The image of a disk that a board or a guest's firmware boots from: one partition with a FAT file system, which U-Boot and EFI read.

use std::io::{self, Cursor, Write};

use fatfs::{FileSystem, FormatVolumeOptions, FsOptions, format_volume};

/// A sector of a disk in bytes, and the first one of the partition: 1 MiB into the disk.
const SECTOR: u64 = 512;
const FIRST: u32 = 2048;
/// The kind of EFI's system partition (UEFI, section 5.2.2), and the mark of a partition that is booted from, which U-Boot looks for.
const SYSTEM_PARTITION: u8 = 0xef;
const BOOTED: u8 = 0x80;
/// Free bytes on the disk beside the files: a user adds to them without making another.
const ROOM: u64 = 32 << 20;
/// Equal files make equal disks.
const IDENTITY: u32 = 0x5061_7274;
const LABEL: [u8; 11] = *b"PARTITA    ";

/// A file of the disk: its path from the root, with `/`, and what is in it.
pub type File<'a> = (&'a str, &'a [u8]);

/// The bytes of a disk with these files. It is the same wherever and whenever it is made.
///
/// # Errors
/// The files do not fit a FAT file system, or two of them are a file and its folder at once.
pub fn disk(files: &[File<'_>]) -> io::Result<Vec<u8>> {
    let content: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let partition = (content + content / 64 + ROOM).next_multiple_of(1 << 20);
    let bytes = usize::try_from(partition).map_err(io::Error::other)?;
    let mut volume = Cursor::new(vec![0; bytes]);
    let options = FormatVolumeOptions::new()
        .volume_id(IDENTITY)
        .volume_label(LABEL);
    format_volume(&mut volume, options)?;
    let file_system = FileSystem::new(&mut volume, FsOptions::new())?;
    for (path, bytes) in files {
        let mut folder = file_system.root_dir();
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_some() {
                folder = folder.create_dir(part)?;
            } else {
                let mut file = folder.create_file(part)?;
                file.truncate()?;
                file.write_all(bytes)?;
                file.flush()?;
            }
        }
    }
    file_system.unmount()?;
    let mut disk = head(partition);
    disk.append(&mut volume.into_inner());
    Ok(disk)
}

/// The bytes in front of a disk's one partition of so many bytes: a master boot record, with no code in it.
fn head(partition: u64) -> Vec<u8> {
    let sectors = u32::try_from(partition / SECTOR).unwrap_or(u32::MAX);
    let mut head = vec![0; FIRST as usize * SECTOR as usize];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = head.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    // The first of four entries: flag, three bytes of an old kind of address, type, three more, first sector, sectors.
    put(446, &[BOOTED, 0, 0, 0, SYSTEM_PARTITION, 0, 0, 0]);
    put(454, &FIRST.to_le_bytes());
    put(458, &sectors.to_le_bytes());
    put(510, &[0x55, 0xaa]);
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn partition_table_names_one_partition() {
        let head = head(96 << 20);
        assert_eq!(head.len(), 1 << 20);
        assert_eq!(
            head[446..462],
            [0x80, 0, 0, 0, 0xef, 0, 0, 0, 0, 8, 0, 0, 0, 0, 3, 0]
        );
        assert_eq!(head[510..512], [0x55, 0xaa]);
        assert!(
            head[..446]
                .iter()
                .chain(&head[462..510])
                .all(|byte| *byte == 0)
        );
    }

    #[test]
    fn disk_holds_files_and_is_reproducible() {
        let large = vec![0x5a; 5 << 20];
        let files: [File<'_>; 3] = [
            ("partita/system", &large),
            ("partita/hypervisor", b"code"),
            ("EFI/BOOT/BOOTRISCV64.EFI", b"the same"),
        ];
        let disk = super::disk(&files).unwrap();
        assert!(disk == super::disk(&files).unwrap());
        let volume = Cursor::new(disk[1 << 20..].to_vec());
        let file_system = FileSystem::new(volume, FsOptions::new()).unwrap();
        for (path, bytes) in files {
            let mut found = Vec::new();
            let mut file = file_system.root_dir().open_file(path).unwrap();
            file.read_to_end(&mut found).unwrap();
            assert!(found == bytes, "{path}");
        }
    }

    #[test]
    fn a_folder_cannot_be_a_file_too() {
        let error = super::disk(&[("a", b"file"), ("a/b", b"in it")]).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
}
