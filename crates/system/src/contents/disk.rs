//! Check of a disk's file: a raw disk of whole sectors, or an image of which `qemu-img` makes one.

use super::form;
use crate::disk_image::qcow2::Header;
use crate::disk_image::{Form, Image};
use crate::{Disk, FileName};
use abi::keys;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A disk is read and written in sectors of so many bytes (virtio 1.2, §5.2).
const SECTOR: u64 = 512;
/// Bytes at the beginning of a file that are read: VDI has its signature behind the first 64.
const START: usize = 128;
/// Program that converts images.
const CONVERTER: &str = "qemu-img";

/// Returns true if `qemu-img` is there.
pub(super) fn has_converter() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(CONVERTER).is_file())
}

/// Mistake of a disk's file, and what to do about it.
pub(super) fn mistake(disk: &Disk, has_converter: bool) -> Option<(String, String)> {
    let FileName::Path(path) = &disk.file.value else {
        return no_snapshot(disk);
    };
    let metadata = std::fs::metadata(path).ok()?;
    // The size of a device is not its file's.
    if !metadata.is_file() {
        return no_snapshot(disk);
    }
    // A file that cannot be read is refused where it is opened.
    let (start, length) = head(path).ok()?;
    let form = form::of_disk(&start, path).filter(|_| !disk.get(keys::RAW));
    if let Some(form) = form {
        return Some((format!("this is no raw disk: {}", form.name), form.remedy));
    }
    match disk.image() {
        Ok(Some(image)) => return of_image(disk, &image, path, has_converter),
        Ok(None) => {}
        Err(error) => {
            let remedy = "`qemu-img info --backing-chain FILE` shows what an image is made of; raw = true takes the file as it is";
            return Some((error.to_string(), String::from(remedy)));
        }
    }
    let message = match length {
        0 => String::from("the disk's file is empty"),
        length if !length.is_multiple_of(SECTOR) => format!(
            "the disk's file has {length} bytes, which is not a number of whole sectors of {SECTOR}"
        ),
        _ => return no_snapshot(disk),
    };
    let remedy = "name a raw image, such as `truncate --size 1G FILE` makes";
    Some((message, String::from(remedy)))
}

/// Mistake of an image that is to be converted.
fn of_image(
    disk: &Disk,
    image: &Image,
    path: &Path,
    has_converter: bool,
) -> Option<(String, String)> {
    let (file, name) = (path.display(), image.form.name());
    let convert = format!("qemu-img convert -O raw {file} {file}.raw, and name {file}.raw");
    if disk.get(keys::PERSISTENT) {
        let message = format!("it is in the form {name}, and only raw disks are persistent");
        return Some((message, format!("convert it: {convert}")));
    }
    if !has_converter {
        let message = format!("it is in the form {name}, and there is no qemu-img to convert it");
        let remedy =
            format!("install it, on Debian the package qemu-utils; or elsewhere: {convert}");
        return Some((message, remedy));
    }
    let wanted = disk.snapshot()?;
    if image.form != Form::Qcow2 {
        return Some((
            format!("images in the form {name} have no snapshots"),
            String::from("take snapshot away"),
        ));
    }
    let known = Header::read(path).ok()?.snapshots;
    let remedy = match known.is_empty() {
        true => String::from("it has none: take snapshot away"),
        false => format!("name one of {}", known.join(", ")),
    };
    let is_known = known.iter().any(|name| name == wanted);
    (!is_known).then(|| (format!("it has no snapshot {wanted:?}"), remedy))
}

/// Mistake of a raw disk with a snapshot.
fn no_snapshot(disk: &Disk) -> Option<(String, String)> {
    disk.snapshot().map(|_| {
        (
            String::from("a raw disk has no snapshots"),
            String::from("take snapshot away, or name a qcow2 image"),
        )
    })
}

/// The first bytes of a file, and its length.
fn head(path: &Path) -> std::io::Result<(Vec<u8>, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut start = Vec::new();
    file.take(START as u64).read_to_end(&mut start)?;
    Ok((start, length))
}

#[cfg(test)]
mod tests {
    use crate::{Document, System};

    /// Mistake of a disk with this content and these keys, where `qemu-img` is there or not.
    fn found(disk: &[u8], keys: &str, has_converter: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("disk"), disk).unwrap();
        let text = format!(
            "harts = 1\nmemory = \"1 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
             kernel = \"image:debian/kernel\"\ndisks = [{{ file = \"disk\"{keys} }}]\n"
        );
        let path = folder.path().join("a.toml");
        let system = System::read(&Document::new(&path, text, &[]).unwrap()).unwrap();
        let found = super::mistake(&system.vms[0].disks[0], has_converter);
        found.map_or_else(String::new, |(message, remedy)| {
            format!("{message}; {remedy}")
        })
    }

    #[test]
    fn images_of_other_forms_are_converted() {
        let image = |begins: &[u8], at: usize| {
            let mut disk = vec![0; 4096];
            disk[at..at + begins.len()].copy_from_slice(begins);
            disk
        };
        for (image, form) in [
            (image(b"QFI\xfb\0\0\0\x03", 0), "qcow2"),
            (image(b"KDMV", 0), "VMDK"),
            (image(b"vhdxfile", 0), "VHDX"),
            (image(b"conectix", 0), "VHD"),
            (image(b"\x7f\x10\xda\xbe", 64), "VDI"),
        ] {
            assert_eq!(found(&image, "", true), "");
            for (keys, converter) in [("", false), (", persistent = true", true)] {
                let found = found(&image, keys, converter);
                assert!(
                    found.contains(form) && found.contains("qemu-img convert"),
                    "{found}"
                );
            }
        }
        assert!(found(&image(b"QFI\xfb\0\0\0\x03", 0), "", false).contains("qemu-utils"));
    }

    #[test]
    fn snapshots_are_those_of_the_image() {
        let snapshot = ", snapshot = \"before\"";
        assert!(found(&[0; 512], snapshot, true).contains("no snapshots"));
        let mut qcow2 = vec![0; 4096];
        qcow2[..8].copy_from_slice(b"QFI\xfb\0\0\0\x03");
        assert!(found(&qcow2, snapshot, true).contains("it has none"));
        qcow2[60..64].copy_from_slice(&1_u32.to_be_bytes());
        qcow2[64..72].copy_from_slice(&1024_u64.to_be_bytes());
        qcow2[1024 + 14..1024 + 16].copy_from_slice(&5_u16.to_be_bytes());
        qcow2[1024 + 40..1024 + 45].copy_from_slice(b"after");
        assert!(found(&qcow2, snapshot, true).contains("name one of after"));
        qcow2[1024 + 15] = 6;
        qcow2[1024 + 40..1024 + 46].copy_from_slice(b"before");
        assert_eq!(found(&qcow2, snapshot, true), "");
    }
}
