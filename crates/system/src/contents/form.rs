//! Forms of files that are no kernels and no raw disks, told by their first bytes.

use crate::kernel::Zboot;
use std::path::Path;

/// Bytes of the header of a RISC-V `Image` (Linux, `Documentation/arch/riscv/boot-image-header.rst`).
const IMAGE_HEADER: usize = 64;

/// Form of a file, with what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Name of the form, for people.
    pub(super) name: String,
    /// Remedy.
    pub(super) remedy: String,
    /// Set if the file's first bytes name the form; clear if they could be a program's.
    pub(super) is_known: bool,
}

impl Form {
    fn new(name: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            remedy: remedy.into(),
            is_known: true,
        }
    }
}

/// Compressed files: first bytes, name of the compression, the program that undoes it.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    // RFC 1952, 2.3.1.
    (b"\x1f\x8b", "gzip", "gunzip"),
    // RFC 8878, 3.1.1.
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    // The .xz File Format, 2.1.1.1.
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    // LZ4 Frame Format, and the older one that Linux has for kernels.
    (b"\x04\x22\x4d\x18", "lz4", "unlz4"),
];

/// Disks in forms that nothing here reads: first bytes, name of the form.
const OTHER_DISKS: [(&[u8], &str); 2] = [(b"QED\0", "QED"), (b"WithoutFreeSpace", "Parallels")];

fn compressed(start: &[u8]) -> Option<(&'static str, &'static str)> {
    let mut forms = COMPRESSED.iter();
    let found = forms.find(|(magic, ..)| start.starts_with(magic))?;
    Some((found.1, found.2))
}

/// Form of a file that is neither a raw disk nor one that is converted, by its first bytes; `None` if it may be one.
///
/// An ISO 9660 image is a raw disk, whose file system guests can mount.
pub(super) fn of_disk(start: &[u8], path: &Path) -> Option<Form> {
    let file = path.display();
    let mut forms = OTHER_DISKS.iter();
    if let Some((_, name)) = forms.find(|(magic, _)| start.starts_with(magic)) {
        let remedy = format!(
            "convert it: qemu-img convert -O raw {file} {file}.raw, and name {file}.raw; raw = true takes it as it is"
        );
        return Some(Form::new(format!("it is in the form {name}"), remedy));
    }
    let (name, program) = compressed(start)?;
    let remedy = format!("decompress it: {program} < {file} > {file}.raw, and name {file}.raw");
    Some(Form::new(format!("it is compressed by {name}"), remedy))
}

/// Form of a file that is no kernel, by its first bytes.
pub(super) fn of_kernel(start: &[u8], is_iso: bool) -> Form {
    const IMAGE: &str = "name the flat Image, for Debian the file /boot/vmlinux of its kernel";
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if is_iso {
        return Form::new(
            "it is an ISO 9660 image of a CD",
            "name a kernel that you take out of it, and the image as a disk: disks = [{ file = ... }]",
        );
    }
    if let Some((name, program)) = compressed(start) {
        let remedy = format!("decompress it: {program} < FILE > Image, and name Image");
        return Form::new(format!("it is compressed by {name}"), remedy);
    }
    match start {
        [] => Form::new("the file is empty", IMAGE),
        [b'M', b'Z', ..] => Zboot::of(start).map(zboot).unwrap_or_else(|| {
            Form::new(
                "it is an EFI program without a RISC-V Image's header",
                IMAGE,
            )
        }),
        [b'0', b'7', b'0', b'7', b'0', b'1', ..] => Form::new(
            "it is an initial RAM disk",
            "name it as initrd, and the kernel as kernel",
        ),
        start if start.iter().all(is_text) => Form::new("it is text", IMAGE),
        start if start.len() < IMAGE_HEADER => Form {
            is_known: false,
            ..Form::new("it is shorter than a kernel's header", IMAGE)
        },
        _ => Form {
            is_known: false,
            ..Form::new(
                "the mark of a RISC-V Image, RSC at byte 56, is missing",
                IMAGE,
            )
        },
    }
}

/// A compressed kernel behind an EFI program that unpacks it. One that gzip has compressed is unpacked before it is looked at.
fn zboot(program: Zboot<'_>) -> Form {
    let Zboot { offset, size, .. } = program;
    let decompress = match program.compression {
        b"lz4" => "unlz4",
        b"lzma" => "unlzma",
        b"xzkern" => "unxz",
        b"zstd" | b"zstd22" => "unzstd",
        _ => "the program for its compression",
    };
    Form::new(
        "it is a compressed kernel behind an EFI program (EFI zboot)",
        format!(
            "take the kernel out of it: tail -c +{} FILE | head -c {size} | {decompress} > Image, and name Image",
            u64::from(offset) + 1
        ),
    )
}
