//! Writes cpio archives in the "new ASCII" form (newc), which `abi::cpio` reads and Linux unpacks.

/// Something has more bytes, or there are more entries, than a number of the form can say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} does not fit into a cpio archive")]
pub struct TooLarge {
    name: String,
}

/// An archive that is being written.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Linux takes entries with the same number and more than one link to be one file.
    entries: u32,
}

/// The kinds of entries, as in `st_mode`.
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

impl Writer {
    /// An archive without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file with these permissions.
    ///
    /// # Errors
    /// It is larger than 4 GiB.
    pub fn file(&mut self, name: &str, permissions: u32, data: &[u8]) -> Result<(), TooLarge> {
        self.entry(name, REGULAR | permissions, data)
    }

    /// Adds a folder; one must stand before what is in it.
    ///
    /// # Errors
    /// There are too many entries.
    pub fn folder(&mut self, name: &str) -> Result<(), TooLarge> {
        self.entry(name, FOLDER | 0o755, &[])
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// There are too many entries.
    pub fn link(&mut self, name: &str, target: &str) -> Result<(), TooLarge> {
        self.entry(name, LINK | 0o777, target.as_bytes())
    }

    /// The archive with its trailer.
    pub fn finish(mut self) -> Vec<u8> {
        self.header(abi::cpio::TRAILER, 0, 0);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) -> Result<(), TooLarge> {
        let too_large = || TooLarge {
            name: String::from(name),
        };
        let size = u32::try_from(data.len()).map_err(|_| too_large())?;
        self.entries = self.entries.checked_add(1).ok_or_else(too_large)?;
        self.header(name, mode, size);
        self.bytes.extend_from_slice(data);
        self.pad();
        Ok(())
    }

    fn header(&mut self, name: &str, mode: u32, size: u32) {
        let name_size = name.len() + 1;
        let (number, owner, group, links, time) = (self.entries, 0, 0, 1, 0);
        let (device, checksum) = (0, 0);
        let header = format!(
            "070701{number:08x}{mode:08x}{owner:08x}{group:08x}{links:08x}{time:08x}{size:08x}\
             {device:08x}{device:08x}{device:08x}{device:08x}{name_size:08x}{checksum:08x}{name}\0"
        );
        self.bytes.extend_from_slice(header.as_bytes());
        self.pad();
    }

    fn pad(&mut self) {
        let length = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(length, 0);
    }
}
