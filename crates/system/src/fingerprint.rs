//! Hashes that tell whether two files, or two runs, are the same.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A SHA-256 in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(Sha256::digest(bytes).as_slice())
    }

    /// Of a file's content.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> std::io::Result<Self> {
        let mut file = std::fs::File::open(path)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(Self::from_digest(hash.finalize().as_slice())),
                length => hash.update(piece.get(..length).unwrap_or_default()),
            }
        }
    }

    /// Enough digits for people to tell two apart.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    fn from_digest(digest: &[u8]) -> Self {
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fingerprint of bytes that come one after the other, none of which is kept.
#[derive(Debug, Clone, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The fingerprint of all of them.
    pub fn finish(self) -> Fingerprint {
        Fingerprint::from_digest(self.0.finalize().as_slice())
    }
}

/// The fingerprints of files, each computed once.
#[derive(Debug, Default)]
pub struct Fingerprints {
    known: BTreeMap<PathBuf, Fingerprint>,
}

impl Fingerprints {
    /// None known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(&mut self, path: &Path) -> std::io::Result<Fingerprint> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let fingerprint = Fingerprint::of_file(path)?;
        self.known.insert(path.to_owned(), fingerprint.clone());
        Ok(fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::of(b"abc").to_string(), expected);
    }

    #[test]
    fn a_file_is_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes = vec![7; 3 << 20];
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(
            Fingerprint::of_file(&path).unwrap(),
            Fingerprint::of(&bytes)
        );
    }
}
