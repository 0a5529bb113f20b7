//! The archive of a system image: cpio in its "new ASCII" form (newc).
//!
//! An archive is a row of entries. Each has a header of 110 ASCII bytes (the magic `070701`, then
//! thirteen numbers of eight hexadecimal digits), the name with its NUL, and the data; name and data
//! are padded so that what follows starts at a multiple of four bytes from the archive's start. An
//! entry named `TRAILER!!!` ends it. The form is the one that Linux documents for its initramfs
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Reading copies nothing and checks every size against what is there.

use core::fmt;

/// Length of an entry's header in bytes.
const HEADER_LENGTH: usize = 110;
/// Beginning of every header.
const MAGIC: &[u8] = b"070701";
/// Beginning of a header with a checksum, which the form allows and Partita does not use.
const MAGIC_WITH_CHECKSUM: &[u8] = b"070702";
/// The name that ends an archive.
pub const TRAILER: &str = "TRAILER!!!";

/// Positions of the fields that are read, counted in numbers after the magic.
mod field {
    pub const FILE_SIZE: usize = 6;
    pub const NAME_SIZE: usize = 11;
}

/// Reason why an archive cannot be read. Offsets are bytes from the archive's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpioError {
    /// A header, a name or a file's data ends after the archive does.
    Truncated {
        /// Start of the entry.
        offset: usize,
    },
    /// No entry starts here.
    BadMagic {
        /// Place where an entry should start.
        offset: usize,
    },
    /// A size in the header is not eight hexadecimal digits.
    BadNumber {
        /// Start of the entry.
        offset: usize,
    },
    /// The name is empty, holds a NUL, lacks its final NUL, or is not UTF-8.
    BadName {
        /// Start of the entry.
        offset: usize,
    },
    /// The archive ends without its trailer.
    NoTrailer,
}

impl fmt::Display for CpioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => write!(f, "the entry at byte {offset} is cut short"),
            Self::BadMagic { offset } => write!(f, "no cpio (newc) entry starts at byte {offset}"),
            Self::BadNumber { offset } => {
                write!(f, "the entry at byte {offset} has a size that is no number")
            }
            Self::BadName { offset } => write!(f, "the entry at byte {offset} has a bad name"),
            Self::NoTrailer => write!(f, "the archive ends without its trailer"),
        }
    }
}

impl core::error::Error for CpioError {}

/// One file of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The file's path in the archive, without the NUL.
    pub name: &'a str,
    /// The file's bytes.
    pub data: &'a [u8],
}

/// An archive in memory.
#[derive(Debug, Clone, Copy)]
pub struct Archive<'a> {
    bytes: &'a [u8],
}

impl<'a> Archive<'a> {
    /// Takes `bytes` to be an archive. Bytes after the trailer are ignored.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The entries in order, without the trailer. After an error there are no more.
    pub fn entries(&self) -> Entries<'a> {
        Entries {
            bytes: self.bytes,
            offset: 0,
            done: false,
        }
    }

    /// The file called `name`, `None` if the archive is whole and has none.
    ///
    /// A leading `./` or `/` in the archive's names is ignored.
    ///
    /// # Errors
    /// The archive cannot be read as far as that file.
    pub fn find(&self, name: &str) -> Result<Option<&'a [u8]>, CpioError> {
        for entry in self.entries() {
            let entry = entry?;
            if plain(entry.name) == plain(name) {
                return Ok(Some(entry.data));
            }
        }
        Ok(None)
    }

    /// Length in bytes of the archive with its trailer, which may be less than what was given.
    ///
    /// # Errors
    /// The archive cannot be read to its end.
    pub fn length(&self) -> Result<usize, CpioError> {
        let mut entries = self.entries();
        for entry in &mut entries {
            entry?;
        }
        Ok(entries.offset)
    }
}

/// A path as it would be without its leading `./` or `/`.
fn plain(name: &str) -> &str {
    name.strip_prefix("./")
        .or_else(|| name.strip_prefix('/'))
        .unwrap_or(name)
}

/// The walk over an archive's entries.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    offset: usize,
    done: bool,
}

impl<'a> Entries<'a> {
    /// Reads the entry at the present offset and steps over it; `None` at the trailer.
    fn read(&mut self) -> Result<Option<Entry<'a>>, CpioError> {
        let offset = self.offset;
        let truncated = CpioError::Truncated { offset };
        if offset >= self.bytes.len() {
            return Err(CpioError::NoTrailer);
        }
        let header = slice(self.bytes, offset, HEADER_LENGTH).ok_or(truncated)?;
        if !header.starts_with(MAGIC) && !header.starts_with(MAGIC_WITH_CHECKSUM) {
            return Err(CpioError::BadMagic { offset });
        }
        let number = |index| number(header, index).ok_or(CpioError::BadNumber { offset });
        let name_size = number(field::NAME_SIZE)?;
        let file_size = number(field::FILE_SIZE)?;

        let name_start = offset.checked_add(HEADER_LENGTH).ok_or(truncated)?;
        let name = slice(self.bytes, name_start, name_size).ok_or(truncated)?;
        let name = match name.split_last() {
            Some((0, name)) if !name.is_empty() && !name.contains(&0) => name,
            _ => return Err(CpioError::BadName { offset }),
        };
        let name = core::str::from_utf8(name).map_err(|_| CpioError::BadName { offset })?;

        let name_end = name_start.checked_add(name_size).ok_or(truncated)?;
        if name == TRAILER {
            self.offset = name_end;
            return Ok(None);
        }
        let data_start = align(name_end).ok_or(truncated)?;
        let data = slice(self.bytes, data_start, file_size).ok_or(truncated)?;
        let data_end = data_start.checked_add(file_size).ok_or(truncated)?;
        self.offset = align(data_end).ok_or(truncated)?;
        Ok(Some(Entry { name, data }))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, CpioError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let entry = self.read().transpose();
        self.done = !matches!(entry, Some(Ok(_)));
        entry
    }
}

/// `length` bytes from `start`, if they are there.
fn slice(bytes: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(length)?)
}

/// The next multiple of four.
fn align(offset: usize) -> Option<usize> {
    offset.checked_next_multiple_of(4)
}

/// The header's number at `index` after the magic: eight hexadecimal digits.
fn number(header: &[u8], index: usize) -> Option<usize> {
    let digits = slice(header, MAGIC.len() + index * 8, 8)?;
    // `from_str_radix` would let a sign pass.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{format, string::String, vec::Vec};

    /// An archive written from the format's description.
    fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        let trailer = (String::from(TRAILER), Vec::new());
        for (name, data) in files.iter().chain([&trailer]) {
            let numbers = [
                1,
                0o100644,
                0,
                0,
                1,
                0,
                data.len(),
                0,
                0,
                0,
                0,
                name.len() + 1,
                0,
            ];
            out.extend_from_slice(MAGIC);
            for number in numbers {
                out.extend_from_slice(format!("{number:08x}").as_bytes());
            }
            out.extend_from_slice(name.as_bytes());
            out.push(0);
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend_from_slice(data);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    fn files() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
        prop::collection::vec(
            (
                "[a-z]{1,12}(/[a-z]{1,5})?",
                prop::collection::vec(any::<u8>(), 0..40),
            ),
            0..6,
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(files in files()) {
            let bytes = archive(&files);
            let archive = Archive::new(&bytes);
            let read: Result<Vec<_>, _> = archive.entries().collect();
            let read: Vec<_> =
                read?.iter().map(|entry| (String::from(entry.name), entry.data.to_vec())).collect();
            prop_assert_eq!(&read, &files);
            for (name, _) in &files {
                let first = files.iter().find(|(other, _)| other == name).map(|(_, data)| &data[..]);
                prop_assert_eq!(archive.find(name)?, first);
            }
            prop_assert_eq!(archive.find("/none/such")?, None);
        }

        #[test]
        fn an_archive_cut_short_is_an_error(files in files(), cut in any::<prop::sample::Index>()) {
            let bytes = archive(&files);
            // The padding after the trailer's name carries nothing.
            let whole = Archive::new(&bytes).length()?;
            let cut = cut.index(whole);
            prop_assert!(Archive::new(&bytes[..cut]).entries().any(|entry| entry.is_err()));
        }

        #[test]
        fn garbage_never_panics(
            files in files(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        ) {
            let mut bytes = archive(&files);
            for (position, byte) in changes {
                let position = position.index(bytes.len());
                bytes[position] = byte;
            }
            // Every entry moves the walk on, so there are never more than headers that fit.
            prop_assert!(Archive::new(&bytes).entries().count() <= bytes.len() / HEADER_LENGTH + 1);
        }
    }

    #[test]
    fn the_largest_sizes_are_refused() {
        let mut bytes = archive(&[(String::from("kernel"), Vec::from([1, 2, 3]))]);
        bytes[MAGIC.len() + field::FILE_SIZE * 8..][..8].copy_from_slice(b"ffffffff");
        assert_eq!(
            Archive::new(&bytes).entries().next(),
            Some(Err(CpioError::Truncated { offset: 0 }))
        );
        bytes[MAGIC.len() + field::FILE_SIZE * 8..][..8].copy_from_slice(b"+0000003");
        assert_eq!(
            Archive::new(&bytes).entries().next(),
            Some(Err(CpioError::BadNumber { offset: 0 }))
        );
    }
}
