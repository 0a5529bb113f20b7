//! The file around a checkpoint: mark, version, contents, checksum.
//!
//! All numbers are little-endian. `partita machine\n`, the version (u32), the length of the state
//! (u64) and the state (postcard), the pages (see [`super::memory`]), and the XXH3 checksum (u64)
//! of everything before it.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::error::CheckpointError;

const MARK: &[u8; 16] = b"partita machine\n";
/// Raised by every change of what a checkpoint holds.
pub(super) const VERSION: u32 = 13;
const CHECKSUM_BYTES: usize = 8;

/// Writes a checkpoint and sums it up.
pub(super) struct Writer<W> {
    file: W,
    length: u64,
    checksum: Xxh3,
}

impl<W: Write> Writer<W> {
    pub fn new(file: W) -> io::Result<Self> {
        let mut writer = Self {
            file,
            length: 0,
            checksum: Xxh3::new(),
        };
        writer.put(MARK)?;
        writer.put(&VERSION.to_le_bytes())?;
        Ok(writer)
    }

    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.length += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// How many bytes have been written.
    pub const fn length(&self) -> u64 {
        self.length
    }

    pub fn state(&mut self, state: &impl Serialize) -> io::Result<()> {
        let bytes = postcard::to_stdvec(state).map_err(io::Error::other)?;
        self.put(&(bytes.len() as u64).to_le_bytes())?;
        self.put(&bytes)
    }

    pub fn finish(mut self) -> io::Result<()> {
        let checksum = self.checksum.digest();
        self.file.write_all(&checksum.to_le_bytes())?;
        self.file.flush()
    }
}

/// Reads a checkpoint whose checksum has been found right.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    /// The file without the checksum.
    file: &'a [u8],
    /// Bytes that have not been read.
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a [u8]) -> Result<Self, CheckpointError> {
        let contents = file.strip_prefix(MARK).ok_or(CheckpointError::Foreign)?;
        let (version, contents) = contents
            .split_first_chunk()
            .ok_or(CheckpointError::Damaged)?;
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            let expected = VERSION;
            return Err(CheckpointError::Version { found, expected });
        }
        let (bytes, checksum) = contents
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or(CheckpointError::Damaged)?;
        let summed = file.get(..file.len() - CHECKSUM_BYTES).unwrap_or_default();
        if xxh3_64(summed) != u64::from_le_bytes(*checksum) {
            return Err(CheckpointError::Damaged);
        }
        Ok(Self {
            file: summed,
            bytes,
        })
    }

    pub fn state<T: DeserializeOwned>(&mut self) -> Result<T, CheckpointError> {
        let impossible = CheckpointError::Impossible("the state ends too early");
        let Some((length, rest)) = self.bytes.split_first_chunk() else {
            return Err(impossible);
        };
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((state, rest)) = rest.split_at_checked(length) else {
            return Err(impossible);
        };
        self.bytes = rest;
        match postcard::take_from_bytes(state) {
            Ok((state, [])) => Ok(state),
            _ => Err(CheckpointError::Impossible("the state cannot be read")),
        }
    }

    /// The file without its checksum, and where in it the next byte stands that has not been read.
    pub const fn remaining(&self) -> (&'a [u8], usize) {
        (self.file, self.file.len() - self.bytes.len())
    }
}
