//! A board's one disk for several guests: the guests' disk four times, one behind the other, for VMs that have slices of it.

use crate::debian::Guests;
use crate::error::{ImagesError, at};
use crate::recipe::{Folder, Site};
use std::fs::File;
use std::hash::{DefaultHasher, Hash};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How many file systems it has.
const PARTS: u64 = 4;
/// Size of the pieces that are tested for zeros, of which no copy is made.
const CHUNK: usize = 64 << 10;

/// The folder `board`.
#[derive(Debug)]
pub(super) struct Board;

impl Folder for Board {
    fn name(&self) -> &'static str {
        "board"
    }

    fn needs(&self) -> &'static [&'static dyn Folder] {
        &[&Guests]
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        PARTS.hash(hasher);
        Guests.hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        site.progress.step("making a disk with four file systems");
        let source = site.folders.join(Guests.name()).join("disk");
        repeat(&source, &site.built.join("disk"))
    }
}

/// Writes what is in `source` to a new file, again and again. Zeros become holes.
fn repeat(source: &Path, target: &Path) -> Result<(), ImagesError> {
    let mut from = File::open(source).map_err(at(source))?;
    let length = from.metadata().map_err(at(source))?.len();
    let mut to = File::create(target).map_err(at(target))?;
    to.set_len(length * PARTS).map_err(at(target))?;
    let mut chunk = vec![0; CHUNK];
    for place in (0..length).step_by(CHUNK) {
        let bytes = chunk.get_mut(..CHUNK.min((length - place) as usize));
        let bytes = bytes.unwrap_or_default();
        from.read_exact(bytes).map_err(at(source))?;
        if bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        for part in 0..PARTS {
            to.seek(SeekFrom::Start(part * length + place))
                .and_then(|_| to.write_all(bytes))
                .map_err(at(target))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_comes_four_times() {
        let folder = tempfile::tempdir().unwrap();
        let (one, four) = (folder.path().join("one"), folder.path().join("four"));
        let mut bytes = vec![0; 3 * CHUNK + 512];
        bytes[5] = 1;
        bytes[2 * CHUNK + 7] = 2;
        bytes[3 * CHUNK + 511] = 3;
        std::fs::write(&one, &bytes).unwrap();
        repeat(&one, &four).unwrap();
        assert!(std::fs::read(&four).unwrap() == bytes.repeat(4));
    }
}
