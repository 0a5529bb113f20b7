//! The header of a qcow2 image (QEMU, `docs/interop/qcow2.rst`): the backing file and the names of the snapshots. `qemu-img` reads the rest.

use super::mistake::{ImageMistake, at};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Longest name of a backing file, and most snapshots, as QEMU has them.
const MAX_NAME: u32 = 1023;
const MAX_SNAPSHOTS: u32 = 65_536;
/// Incompatible feature: the content is in another file.
const EXTERNAL_DATA: u64 = 1 << 2;
/// Bytes of a snapshot's entry in front of what has no fixed length.
const ENTRY: usize = 40;

/// Parts of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Name of the backing file.
    pub backing: Option<String>,
    /// Names of the snapshots.
    pub snapshots: Vec<String>,
}

impl Header {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// [`ImageMistake`].
    pub fn read(path: &Path) -> std::result::Result<Self, ImageMistake> {
        let file = File::open(path).map_err(at(path))?;
        Self::of(&|place, length| bytes(&file, place, length)).map_err(at(path))
    }

    /// Reads the header of the image whose bytes `read` gives: so many from a place on.
    ///
    /// # Errors
    /// `read` has one, or the image is broken.
    pub fn of(read: &dyn Fn(u64, usize) -> Result<Vec<u8>>) -> Result<Self> {
        let start = read(0, 80).or_else(|_| read(0, 72))?;
        let version = word(&start, 4);
        if !(2..=3).contains(&version) {
            return Err(broken(format!("version {version} of qcow2 is unknown")));
        }
        if version == 3 && long(&start, 72) & EXTERNAL_DATA != 0 {
            return Err(broken(String::from(
                "its content is in another file, which is not read; `qemu-img convert -O qcow2` makes one file of both",
            )));
        }
        let (place, length) = (long(&start, 8), word(&start, 16));
        let backing = match (place, length) {
            (0, _) | (_, 0) => None,
            (_, length) if length > MAX_NAME => {
                return Err(broken(String::from(
                    "the name of its backing file is too long",
                )));
            }
            (place, length) => Some(text(read(place, length as usize)?)?),
        };
        Ok(Self {
            backing,
            snapshots: snapshots(&start, read)?,
        })
    }
}

/// The names in the table of snapshots.
fn snapshots(start: &[u8], read: &dyn Fn(u64, usize) -> Result<Vec<u8>>) -> Result<Vec<String>> {
    let (count, mut place) = (word(start, 60), long(start, 64));
    if count > MAX_SNAPSHOTS {
        return Err(broken(String::from("it has too many snapshots")));
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let entry = read(place, ENTRY)?;
        let (identity, name) = (half(&entry, 12), half(&entry, 14));
        let extra = u64::from(word(&entry, 36));
        let begin = place.checked_add(ENTRY as u64 + extra + u64::from(identity));
        let begin =
            begin.ok_or_else(|| broken(String::from("its snapshots lie beyond its end")))?;
        names.push(text(read(begin, name.into())?)?);
        let end = begin.checked_add(u64::from(name) + 7);
        place = end.map_or(u64::MAX, |end| end & !7);
    }
    Ok(names)
}

fn bytes(file: &File, place: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, place)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| broken(String::from("a name in it is no text")))
}

fn broken(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// Numbers of the header, the most significant byte first; 0 beyond its end.
fn half(bytes: &[u8], at: usize) -> u16 {
    let there = bytes.get(at..).and_then(|rest| rest.first_chunk());
    there.map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let there = bytes.get(at..).and_then(|rest| rest.first_chunk());
    there.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let there = bytes.get(at..).and_then(|rest| rest.first_chunk());
    there.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
