//! Where a block device's bytes are kept.

use core::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A sector of virtio-blk, in bytes (virtio 1.2, §5.2.2).
pub const SECTOR: u64 = riscv::virtio::block::SECTOR_BYTES;

/// A medium of whole sectors.
pub trait Disk: fmt::Debug + Send {
    /// How many sectors there are.
    fn sectors(&self) -> u64;

    /// Tests whether writes are refused.
    fn is_read_only(&self) -> bool;

    /// Fills `bytes` from byte `offset` on.
    ///
    /// # Errors
    /// Whatever the host's file system says.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` from byte `offset` on.
    ///
    /// # Errors
    /// Whatever the host's file system says; [`ErrorKind::ReadOnlyFilesystem`] if writes are
    /// refused.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when what was written is on the medium.
    ///
    /// # Errors
    /// Whatever the host's file system says.
    fn flush(&mut self) -> io::Result<()>;

    /// Which version of which file the disk is, if two disks of the same version certainly hold the same. None if that
    /// cannot be told without reading them.
    fn version(&self) -> Option<Version> {
        None
    }
}

/// How long a file must have been left alone before its times tell whether it changes: far longer than the steps in which
/// hosts count the time of a change.
const SETTLED: Duration = Duration::from_secs(2);

/// A version of a file, as the host's file system tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds of the last change of its contents.
    modified: (i64, i64),
    /// The same of the last change of anything, which programs cannot set.
    changed: (i64, i64),
}

impl Version {
    /// None if the file has changed so lately that another change might leave its times as they are.
    fn of(file: &File, now: SystemTime) -> Option<Self> {
        let found = file.metadata().ok()?;
        let changed = (found.ctime(), found.ctime_nsec());
        let since = Duration::new(changed.0.try_into().ok()?, changed.1.try_into().ok()?);
        let age = now.duration_since(SystemTime::UNIX_EPOCH + since).ok()?;
        (age >= SETTLED && found.is_file()).then_some(Self {
            device: found.dev(),
            inode: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed,
        })
    }
}

/// Why a disk's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The file cannot be opened, or its length not be found out.
    #[error("cannot open the disk {path}: {error}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Error of the host.
        error: io::Error,
    },
    /// The file may not be written.
    #[error(
        "the disk {path} is write-protected: change that, or leave the file as it is (--snapshot, or \
         keep = false in a system)"
    )]
    Protected {
        /// The file.
        path: PathBuf,
    },
    /// Another process has the file in use.
    #[error("the disk {path} is in use by another machine: wait for it, or give this one a copy")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty or ends within a sector.
    #[error("the disk {path} has {length} bytes, which is not a number of whole sectors")]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
}

/// Access to a disk's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The guest's writes go to the file; nobody else may use it meanwhile.
    Write,
    /// The file stays as it is; others may read it too.
    Read,
}

/// A raw image file, locked against a second writer for as long as it is open.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    sectors: u64,
    access: Access,
}

impl FileDisk {
    /// Opens and locks a raw image.
    ///
    /// # Errors
    /// [`DiskError`] if the file is missing, may not be opened in this way, is in use, or is no
    /// disk image by its length.
    pub fn open(path: &Path, access: Access) -> Result<Self, DiskError> {
        let failed = |error| DiskError::Open {
            path: path.to_owned(),
            error,
        };
        let write = access == Access::Write;
        // The superuser may write to what is protected, and would not notice.
        let protected = || std::fs::metadata(path).map(|found| found.permissions().readonly());
        if write && protected().map_err(failed)? {
            return Err(DiskError::Protected {
                path: path.to_owned(),
            });
        }
        let open = OpenOptions::new().read(true).write(write).open(path);
        let mut file = open.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem if write => {
                DiskError::Protected {
                    path: path.to_owned(),
                }
            }
            _ => failed(error),
        })?;
        let lock = if write {
            file.try_lock()
        } else {
            file.try_lock_shared()
        };
        lock.map_err(|error| match error {
            TryLockError::WouldBlock => DiskError::InUse {
                path: path.to_owned(),
            },
            TryLockError::Error(error) => failed(error),
        })?;
        // The end of a block device is found by seeking, of a file as well.
        let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if length == 0 || !length.is_multiple_of(SECTOR) {
            return Err(DiskError::Length {
                path: path.to_owned(),
                length,
            });
        }
        Ok(Self {
            file,
            sectors: length / SECTOR,
            access,
        })
    }
}

impl Disk for FileDisk {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn is_read_only(&self) -> bool {
        self.access == Access::Read
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(bytes)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.is_read_only() {
            return Err(ErrorKind::ReadOnlyFilesystem.into());
        }
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn version(&self) -> Option<Version> {
        if !self.is_read_only() {
            return None;
        }
        Version::of(&self.file, SystemTime::now())
    }
}

/// A disk in memory; also what stands in for a disk that a restored machine has not been given.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    bytes: Vec<u8>,
}

impl MemoryDisk {
    /// A disk of these bytes, with zeros up to a whole sector.
    #[must_use]
    pub fn new(mut bytes: Vec<u8>) -> Self {
        bytes.resize(bytes.len().next_multiple_of(SECTOR as usize), 0);
        Self { bytes }
    }

    fn range(&mut self, offset: u64, length: usize) -> io::Result<&mut [u8]> {
        usize::try_from(offset)
            .ok()
            .and_then(|start| Some(start..start.checked_add(length)?))
            .and_then(|range| self.bytes.get_mut(range))
            .ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

impl Disk for MemoryDisk {
    fn sectors(&self) -> u64 {
        self.bytes.len() as u64 / SECTOR
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(self.range(offset, bytes.len())?);
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.range(offset, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str, length: u64) -> PathBuf {
        let path = std::env::temp_dir().join(format!("{name}-{}.raw", std::process::id()));
        File::create(&path)
            .and_then(|file| file.set_len(length))
            .expect("a temporary file");
        path
    }

    #[test]
    fn second_writers_are_refused_and_readers_share() {
        let path = image("lock", 4096);
        let writer = FileDisk::open(&path, Access::Write).expect("the first writer");
        for access in [Access::Write, Access::Read] {
            let second = FileDisk::open(&path, access);
            assert!(matches!(second, Err(DiskError::InUse { .. })), "{access:?}");
        }
        drop(writer);
        let reader = FileDisk::open(&path, Access::Read).expect("a reader");
        assert!(FileDisk::open(&path, Access::Read).is_ok());
        assert!(matches!(
            FileDisk::open(&path, Access::Write),
            Err(DiskError::InUse { .. })
        ));
        drop(reader);
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn files_that_are_no_disks_are_refused() {
        let path = image("length", 700);
        let odd = FileDisk::open(&path, Access::Read);
        assert!(matches!(odd, Err(DiskError::Length { length: 700, .. })));
        let _ = std::fs::remove_file(&path);
        assert!(matches!(
            FileDisk::open(&path, Access::Read),
            Err(DiskError::Open { .. })
        ));
    }

    #[test]
    fn write_protected_files_are_read_only() {
        let path = image("protected", 1024);
        let mut permissions = std::fs::metadata(&path).expect("a file").permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).expect("protected");
        let written = FileDisk::open(&path, Access::Write);
        assert!(matches!(written, Err(DiskError::Protected { .. })));
        assert!(FileDisk::open(&path, Access::Read).is_ok());
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn a_read_only_file_refuses_writes() {
        let path = image("readonly", 1024);
        let mut disk = FileDisk::open(&path, Access::Read).expect("a reader");
        assert!(disk.write(0, &[1]).is_err());
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn versions_change_with_the_file() {
        let path = image("partita-version", 4 * SECTOR);
        let open = || File::open(&path).expect("the file");
        let later = SystemTime::now() + SETTLED + Duration::from_secs(1);
        let first = Version::of(&open(), later).expect("a version");
        assert_eq!(Version::of(&open(), later), Some(first));
        assert_eq!(Version::of(&open(), SystemTime::now()), None);
        // A copy with the same contents is another file.
        let copy = path.with_extension("copy");
        std::fs::copy(&path, &copy).expect("a copy");
        let other = Version::of(&File::open(&copy).expect("the copy"), later);
        assert!(other.is_some() && other != Some(first));
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&path, [7; 2048]).expect("a change");
        let second = Version::of(&open(), SystemTime::now() + SETTLED + SETTLED);
        assert!(second.is_some() && second != Some(first));
        // What may be written by the machine itself has no version that is known beforehand.
        let written = FileDisk::open(&path, Access::Write).expect("a writer");
        assert_eq!(written.version(), None);
        std::fs::remove_file(&path).expect("removal");
        std::fs::remove_file(&copy).expect("removal");
    }
}
