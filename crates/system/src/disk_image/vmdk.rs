//! VMDK images of one file (VMware, Virtual Disk Format 5.0). A descriptor can name further files; images with any other file than their own
//! are refused.

use super::mistake::{ImageMistake, at};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Beginning of a descriptor.
pub(super) const DESCRIPTOR: &[u8] = b"# Disk DescriptorFile";
/// A descriptor stands in the first bytes of a file, by itself or behind the header of the extent.
const READ: u64 = 64 << 10;
/// Access words at the beginning of a line that names an extent.
const ACCESS: [&str; 3] = ["RW ", "RDONLY ", "NOACCESS "];

/// Checks that an image needs no other file.
pub(super) fn check(path: &Path) -> Result<(), ImageMistake> {
    let file = File::open(path).map_err(at(path))?;
    let mut start = Vec::new();
    file.take(READ).read_to_end(&mut start).map_err(at(path))?;
    match other_file(&start) {
        None => Ok(()),
        Some(what) => Err(ImageMistake::Refused {
            path: path.to_owned(),
            what,
        }),
    }
}

/// The mistake of an image that begins so and needs another file.
fn other_file(start: &[u8]) -> Option<String> {
    const REMEDY: &str = "make one raw disk of all: qemu-img convert -O raw";
    if start.starts_with(DESCRIPTOR) {
        return Some(format!("it is the description of several files; {REMEDY}"));
    }
    let text = String::from_utf8_lossy(start);
    let lines = text.split(['\n', '\0']).map(str::trim);
    for line in lines {
        if line.starts_with("parentFileNameHint") {
            return Some(format!("it is the difference to another image; {REMEDY}"));
        }
        let is_extent = ACCESS.iter().any(|access| line.starts_with(access));
        let words: Vec<&str> = line.split_whitespace().collect();
        if is_extent && words.get(2).is_some_and(|kind| *kind != "SPARSE") {
            return Some(format!("its content is in another file; {REMEDY}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused() {
        let own =
            "KDMV\0\0\0# Disk DescriptorFile\nparentCID=ffffffff\nRW 8192 SPARSE \"a.vmdk\"\n";
        assert_eq!(other_file(own.as_bytes()), None);
        for (text, told) in [
            ("# Disk DescriptorFile\n", "description"),
            ("KDMV\nRW 8192 FLAT \"/etc/shadow\" 0\n", "another file"),
            ("KDMV\nparentFileNameHint=\"/etc/shadow\"\n", "difference"),
        ] {
            let found = other_file(text.as_bytes());
            assert!(
                found.clone().is_some_and(|found| found.contains(told)),
                "{found:?}"
            );
        }
    }
}
