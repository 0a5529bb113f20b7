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

/// Bytes of a header, without the name.
const HEADER: usize = 110;

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

    /// Adds a file whose bytes begin at a multiple of 8 of the archive, so that code that copies them out of memory
    /// can do so in words. An empty file called `pad` goes in front of it where that takes one.
    ///
    /// # Errors
    /// It is larger than 4 GiB.
    pub fn aligned_file(
        &mut self,
        name: &str,
        permissions: u32,
        data: &[u8],
    ) -> Result<(), TooLarge> {
        let begins = |name: &str| (self.bytes.len() + HEADER + name.len() + 1).next_multiple_of(4);
        if !begins(name).is_multiple_of(8) {
            // Its header takes 116 bytes, four more than a multiple of eight.
            self.file("pad", 0, &[])?;
        }
        self.file(name, permissions, data)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_files_begin_at_words() {
        let mut writer = Writer::new();
        let names = ["a", "bc", "def", "ghij", "klmno", "pqrstu"];
        for (length, name) in names.iter().enumerate() {
            let data = vec![7; length * 3 + 1];
            writer.aligned_file(name, 0o644, &data).expect("room");
        }
        let bytes = writer.finish();
        let archive = abi::cpio::Archive::new(&bytes);
        for (length, name) in names.iter().enumerate() {
            let data = archive.find(name).expect("an archive").expect(name);
            assert_eq!(data.len(), length * 3 + 1);
            let offset = data.as_ptr().addr() - bytes.as_ptr().addr();
            assert_eq!(offset % 8, 0, "{name}");
        }
    }
}
