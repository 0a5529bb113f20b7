//! Kernels as they come: an `Image`, or one that is compressed by gzip, by itself (`Image.gz`) or behind an EFI program that unpacks it
//! (EFI zboot), or an ELF file. A firmware may be a flat program without a header too.

pub mod program;

use crate::BootForm;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::Path;

/// Mark of an `Image` in its header, and the mark's place.
pub(crate) const MARK: &[u8] = b"RSC\x05";
pub(crate) const MARK_AT: usize = 56;
/// First bytes of a file that gzip has compressed (RFC 1952, 2.3.1).
const GZIP: &[u8] = b"\x1f\x8b";
/// Bytes of an EFI zboot program's header (Linux, `drivers/firmware/efi/libstub/zboot-header.S`): its marks, and where the offset and the
/// size of the payload and the name of the compression stand.
const ZBOOT_HEADER: usize = 32;
const ZBOOT_MARKS: [(usize, &[u8]); 2] = [(0, b"MZ"), (4, b"zimg")];
const PAYLOAD_OFFSET: usize = 8;
const PAYLOAD_SIZE: usize = 12;
const COMPRESSION: usize = 24;
/// Most bytes of a kernel that is unpacked: a small file may stand for very many.
const MAX_UNPACKED: u64 = 1 << 30;

/// Part of a file that gzip has compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Payload {
    offset: u64,
    /// Bytes; all to the file's end where the file has no more.
    size: u64,
}

/// An EFI zboot program by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zboot<'a> {
    /// Offset of the payload in the file, in bytes.
    pub(crate) offset: u32,
    /// Size of the payload in bytes.
    pub(crate) size: u32,
    /// Name of the compression.
    pub(crate) compression: &'a [u8],
}

impl<'a> Zboot<'a> {
    /// The program that `start` is the beginning of, if it is one.
    pub(crate) fn of(start: &'a [u8]) -> Option<Self> {
        let has = |(at, mark): &(usize, &[u8])| {
            let there = start.get(*at..);
            there.is_some_and(|there| there.starts_with(mark))
        };
        if !ZBOOT_MARKS.iter().all(has) {
            return None;
        }
        let number = |at: usize| {
            let bytes = start.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let name = start.get(COMPRESSION..).unwrap_or_default();
        Some(Self {
            offset: number(PAYLOAD_OFFSET),
            size: number(PAYLOAD_SIZE),
            compression: name.split(|byte| *byte == 0).next().unwrap_or_default(),
        })
    }
}

/// The part of a file with this beginning and length that gzip has compressed, if there is one.
fn payload(start: &[u8], length: u64) -> Option<Payload> {
    if start.starts_with(GZIP) {
        return Some(Payload {
            offset: 0,
            size: length,
        });
    }
    let zboot = Zboot::of(start).filter(|zboot| zboot.compression == b"gzip")?;
    Some(Payload {
        offset: zboot.offset.into(),
        size: zboot.size.into(),
    })
}

/// A kernel's file, read as the kernel in it.
struct Source {
    file: File,
    length: u64,
    payload: Option<Payload>,
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut start = Vec::new();
        (&mut file)
            .take(ZBOOT_HEADER as u64)
            .read_to_end(&mut start)?;
        file.rewind()?;
        let payload = payload(&start, length);
        Ok(Self {
            file,
            length,
            payload,
        })
    }

    /// Returns at most so many bytes of the kernel, from its beginning on.
    fn read(mut self, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let Some(Payload { offset, size }) = self.payload else {
            self.file.take(most).read_to_end(&mut bytes)?;
            return Ok(bytes);
        };
        self.file.seek(SeekFrom::Start(offset))?;
        let unpacked = GzDecoder::new(self.file.take(size));
        let broken = |error: Error| {
            let kind = ErrorKind::InvalidData;
            Error::new(
                kind,
                format!("what gzip has compressed in it is broken: {error}"),
            )
        };
        unpacked
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(broken)?;
        Ok(bytes)
    }

    /// Length of the kernel: the compressed data end with it, modulo 2^32 (RFC 1952, 2.3.1).
    fn unpacked_length(&mut self) -> Result<u64> {
        const LENGTH: u64 = 4;
        let Some(Payload { offset, size }) = self.payload else {
            return Ok(self.length);
        };
        let end = offset.saturating_add(size).min(self.length);
        self.file
            .seek(SeekFrom::Start(end.saturating_sub(LENGTH)))?;
        let mut bytes = [0; 4];
        self.file.read_exact(&mut bytes)?;
        self.file.rewind()?;
        Ok(u32::from_le_bytes(bytes).into())
    }
}

/// Returns true if these are the first bytes of an `Image`.
pub(crate) fn is_image(start: &[u8]) -> bool {
    let there = start.get(MARK_AT..);
    there.is_some_and(|there| there.starts_with(MARK))
}

/// Reads what a VM boots as an `Image`: unpacked, and with a header of ours where it has none.
///
/// # Errors
/// The file cannot be read, what is compressed in it is broken, it unpacks to more than 1 GiB, or it is an ELF file that is no program for
/// a guest.
pub fn read(path: &Path, boot: BootForm) -> Result<Vec<u8>> {
    let source = Source::open(path)?;
    let is_packed = source.payload.is_some();
    let most = match is_packed {
        true => MAX_UNPACKED + 1,
        false => u64::MAX,
    };
    let bytes = source.read(most)?;
    if is_packed && bytes.len() as u64 > MAX_UNPACKED {
        return Err(Error::new(
            ErrorKind::FileTooLarge,
            "it unpacks to more than 1 GiB",
        ));
    }
    if bytes.starts_with(program::ELF) {
        return program::of_elf(&bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error));
    }
    match boot {
        BootForm::Firmware if !is_image(&bytes) => Ok(program::flat(&bytes)),
        _ => Ok(bytes),
    }
}

/// Returns whether a file is no `Image` that can be booted as it is.
///
/// # Errors
/// The file cannot be read.
pub fn is_packed(path: &Path, boot: BootForm) -> Result<bool> {
    let source = Source::open(path)?;
    if source.payload.is_some() {
        return Ok(true);
    }
    let start = source.read((MARK_AT + MARK.len()) as u64)?;
    Ok(start.starts_with(program::ELF) || boot == BootForm::Firmware && !is_image(&start))
}

/// The first bytes of a kernel, unpacked, at most so many, and the length that it has unpacked.
pub(crate) fn head(path: &Path, most: usize) -> Result<(Vec<u8>, u64)> {
    let mut source = Source::open(path)?;
    let length = source.unpacked_length()?;
    Ok((source.read(most as u64)?, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A zboot program with this payload behind a page.
    fn zboot(payload: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 4096];
        file[..8].copy_from_slice(b"MZ\0\0zimg");
        file[PAYLOAD_OFFSET..][..4].copy_from_slice(&4096_u32.to_le_bytes());
        let size = u32::try_from(payload.len()).unwrap();
        file[PAYLOAD_SIZE..][..4].copy_from_slice(&size.to_le_bytes());
        file[COMPRESSION..][..5].copy_from_slice(b"gzip\0");
        file.extend(payload);
        file.extend([0xee; 100]);
        file
    }

    #[test]
    fn packed_kernels_are_read_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel");
        let kernel: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = gzip(&kernel);
        for (file, packed) in [
            (kernel.clone(), false),
            (packed.clone(), true),
            (zboot(&packed), true),
        ] {
            std::fs::write(&path, file).unwrap();
            assert_eq!(is_packed(&path, BootForm::Kernel).unwrap(), packed);
            assert_eq!(read(&path, BootForm::Kernel).unwrap(), kernel);
            let start = kernel[..64].to_vec();
            assert_eq!(head(&path, 64).unwrap(), (start, kernel.len() as u64));
        }
    }

    #[test]
    fn firmware_without_a_header_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("firmware");
        std::fs::write(&path, b"program").unwrap();
        assert!(is_packed(&path, BootForm::Firmware).unwrap());
        assert!(!is_packed(&path, BootForm::Kernel).unwrap());
        let image = read(&path, BootForm::Firmware).unwrap();
        assert_eq!(image, program::flat(b"program"));
        // What has a header stays as it is.
        std::fs::write(&path, &image).unwrap();
        assert!(!is_packed(&path, BootForm::Firmware).unwrap());
        assert_eq!(read(&path, BootForm::Firmware).unwrap(), image);
    }

    #[test]
    fn broken_kernels_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel");
        let packed = gzip(&[7; 5000]);
        let mut beyond = zboot(&packed);
        beyond[PAYLOAD_OFFSET..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
        for file in [packed[..packed.len() - 9].to_vec(), beyond] {
            std::fs::write(&path, file).unwrap();
            let error = read(&path, BootForm::Kernel).unwrap_err().to_string();
            assert!(error.contains("broken"), "{error}");
        }
        std::fs::write(&path, GZIP).unwrap();
        assert!(head(&path, 64).is_err());
    }
}
