//! Checks of the files that a system names: a kernel is a kernel, and a disk is a raw disk of whole sectors.
//!
//! A system can be read without this, as what is in files does not matter to who only plans runs.

mod disk;
mod form;

use super::{BootForm, Bytes, Document, FileName, Located, Problem, System, Vm};
use crate::cache::{Cache, U_BOOT};
use crate::kernel::program::ELF;
use abi::keys;
use abi::system::Placement;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Bytes at the beginning of a kernel's file that are read: the header of a RISC-V `Image` (Linux,
/// `Documentation/arch/riscv/boot-image-header.rst`).
const HEADER: usize = 64;
/// Where in it stand the offset of the kernel in RAM and the RAM that it takes.
const TEXT_OFFSET: usize = 8;
const IMAGE_SIZE: usize = 16;

/// Looks into every kernel and disk that is a file of the user's own, and at the sizes of what was built.
pub fn contents(document: &Document, system: &System) -> Vec<Problem> {
    within(document, system, Cache::from_environment().ok().as_ref())
}

/// The same with this cache.
fn within(document: &Document, system: &System, cache: Option<&Cache>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for vm in &system.vms {
        if let Some((message, remedy)) = kernel(vm, cache) {
            problems.push(problem(
                document,
                &vm.kernel,
                format!("vm.{}.{}", vm.name, vm.boot.key()),
                message,
                &remedy,
            ));
        }
    }
    for (key, disk) in system.all_disks() {
        if let Some((message, remedy)) = disk::mistake(disk, disk::has_converter()) {
            let key = format!("{key}.file");
            problems.push(problem(document, &disk.file, key, message, &remedy));
        }
    }
    problems
}

fn problem(
    document: &Document,
    file: &Located<FileName>,
    key: String,
    message: String,
    remedy: &str,
) -> Problem {
    let value = document.source(&file.origin);
    Problem::new(document, &file.origin, key, message, remedy).with_value(value)
}

/// Where a file is. What is not built yet is no mistake, and its size is not known.
fn place(file: &FileName, cache: Option<&Cache>) -> Option<PathBuf> {
    match (file, cache) {
        (FileName::Path(path), _) => Some(path.clone()),
        (FileName::Built(_), Some(cache)) => Some(file.path(cache)).filter(|path| path.is_file()),
        (FileName::Built(_), None) => None,
    }
}

/// Mistake of a VM's kernel or firmware, with its remedy.
fn kernel(vm: &Vm, cache: Option<&Cache>) -> Option<(String, String)> {
    if vm.kernel.value == FileName::Built(String::from(U_BOOT)) && is_moved(vm) {
        return Some(moved());
    }
    let path = place(&vm.kernel.value, cache)?;
    let unreadable = |error: std::io::Error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => "let this user read it",
            _ => "name a kernel that is whole",
        };
        (format!("it cannot be read: {error}"), String::from(remedy))
    };
    let (start, length) = match crate::kernel::head(&path, HEADER) {
        Ok(head) => head,
        Err(error) => return Some(unreadable(error)),
    };
    if crate::kernel::is_image(&start) {
        return oversize(vm, cache, &start, length);
    }
    let form = form::of_kernel(&start, is_iso(&path));
    if !start.starts_with(ELF) && (vm.boot == BootForm::Kernel || form.is_known) {
        let what = match vm.boot {
            BootForm::Kernel => "kernel",
            BootForm::Firmware => "firmware",
        };
        let message = format!("this is no RISC-V {what}: {}", form.name);
        return Some((message, form.remedy));
    }
    let image = match crate::kernel::read(&path, vm.boot) {
        Ok(image) => image,
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let message = format!("this is an ELF file that a VM cannot boot: {error}");
            let remedy = "link it for QEMU's board, from 0x80200000 on; for Linux name arch/riscv/boot/Image of its tree";
            return Some((message, String::from(remedy)));
        }
        Err(error) => return Some(unreadable(error)),
    };
    let mistake = is_moved(vm).then(moved);
    mistake.or_else(|| oversize(vm, cache, &image, image.len() as u64))
}

/// Returns true if the VM's memory does not begin where a program that cannot move is linked.
fn is_moved(vm: &Vm) -> bool {
    vm.get(keys::PLACEMENT) == Placement::Real
}

/// Mistake of a program that cannot move.
fn moved() -> (String, String) {
    let message = "it runs at the address for which it is linked, and placement = \"real\" gives the VM other memory";
    let remedy = "write placement = \"resident\" and io = \"general\"";
    (String::from(message), String::from(remedy))
}

/// Mistake of an image with this beginning and length that takes more memory than its VM has.
fn oversize(vm: &Vm, cache: Option<&Cache>, start: &[u8], length: u64) -> Option<(String, String)> {
    let number = |at: usize| -> u64 {
        let bytes = start.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let takes = number(IMAGE_SIZE)
        .max(length)
        .saturating_add(number(TEXT_OFFSET));
    let initrd = vm.initrd.as_ref();
    let initrd = initrd.and_then(|file| place(&file.value, cache));
    let with_initrd = initrd
        .and_then(|path| std::fs::metadata(path).ok())
        .map_or(0, |metadata| metadata.len());
    let all = takes.saturating_add(with_initrd);
    let memory = vm.memory.value;
    (all > memory.0).then(|| {
        let what = match (with_initrd, vm.boot) {
            (0, BootForm::Kernel) => "the kernel takes",
            (0, BootForm::Firmware) => "the firmware takes",
            _ => "kernel and initrd take",
        };
        let mebibytes = all.div_ceil(1 << 20);
        let next = Bytes((2 * all).next_multiple_of(1 << 26));
        (
            format!("{what} {mebibytes} MiB, and the VM's memory is {memory}"),
            format!("give the VM more memory, such as {next}"),
        )
    })
}

/// Returns true if a file is an ISO 9660 image: a volume descriptor begins at its sector 16 (ECMA-119, 6.3 and 8.1).
fn is_iso(path: &Path) -> bool {
    use std::os::unix::fs::FileExt;
    const DESCRIPTOR_AT: u64 = 16 * 2048;
    let mut descriptor = [0; 6];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut descriptor, DESCRIPTOR_AT));
    read.is_ok() && descriptor.get(1..) == Some(b"CD001")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::fs;
    use std::io::Write;

    /// A kernel's file that takes so much RAM.
    fn image(size: u64) -> Vec<u8> {
        let mut image = vec![0; 4096];
        image[IMAGE_SIZE..IMAGE_SIZE + 8].copy_from_slice(&size.to_le_bytes());
        image[56..60].copy_from_slice(crate::kernel::MARK);
        image
    }

    fn found(kernel: &[u8], disk: &[u8]) -> Vec<String> {
        found_with(kernel, disk, "")
    }

    /// Mistakes of a system with these files, and these further keys of the disk.
    fn found_with(kernel: &[u8], disk: &[u8], keys: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kernel"), kernel).unwrap();
        fs::write(folder.path().join("disk"), disk).unwrap();
        let text = format!(
            "harts = 1\nmemory = \"1 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
             kernel = \"kernel\"\ndisks = [{{ file = \"disk\"{keys} }}]\n"
        );
        let path = folder.path().join("a.toml");
        let document = Document::new(&path, text, &[]).unwrap();
        let system = System::read(&document).unwrap();
        contents(&document, &system)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn wrong_kernels_are_named_by_their_form() {
        let sector = [0; 512];
        assert_eq!(found(&image(1 << 20), &sector), Vec::<String>::new());
        assert_eq!(found(&gzip(&image(1 << 20)), &sector), Vec::<String>::new());
        let mut cut = image(1 << 20);
        cut.truncate(50);
        for (kernel, what) in [
            (
                &b"hello, this is a text file and no kernel, whatever its name may say of it.\n"[..],
                "text",
            ),
            (b"", "empty"),
            (b"\x7fELF\x02\x01\x01\x00", "ELF"),
            (b"\x1f\x8b\x08\x00", "whole"),
            (b"\xfd7zXZ\0", "unxz"),
            (b"070701", "initrd"),
            (
                b"MZ\0\0zimg\0\x10\0\0\0\x20\0\0\0\0\0\0\0\0\0\0zstd\0",
                "tail -c +4097 FILE | head -c 8192 | unzstd",
            ),
            (b"MZ\0\0, an EFI program \0", "an EFI program without"),
            (&iso(), "ISO 9660"),
            (&gzip(b"\x7fELF\x02\x01\x01\x00"), "ELF"),
            (&cut, "shorter"),
            (&[0xff; 100], "RSC"),
        ] {
            let found = found(kernel, &sector);
            assert!(
                found.len() == 1 && found[0].contains(what),
                "{what}: {found:?}"
            );
            assert!(found[0].contains("a.toml:7: vm.a.kernel"), "{found:?}");
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A CD's image, without files.
    fn iso() -> Vec<u8> {
        let mut iso = vec![0; 64 << 10];
        iso[0x8000..0x8006].copy_from_slice(b"\x01CD001");
        iso
    }

    #[test]
    fn programs_are_firmware_where_they_are_linked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        let found = |firmware: &[u8], keys: &str| {
            fs::write(folder.path().join("firmware"), firmware).unwrap();
            let text = format!(
                "harts = 1\nmemory = \"1 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
                 firmware = \"firmware\"\n{keys}"
            );
            let document = Document::new(&path, text, &[]).unwrap();
            let system = System::read(&document).unwrap();
            let problems = contents(&document, &system);
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            texts.join("\n")
        };
        let program = [0x13, 0, 0, 0, 0x67, 0x80, 0, 0];
        assert_eq!(found(&program, ""), "");
        let moved = found(&program, "placement = \"real\"\n");
        assert!(
            moved.contains("vm.a.firmware") && moved.contains("linked"),
            "{moved}"
        );
        assert!(found(&vec![0x13; 70 << 20], "").contains("the firmware takes"));
        for (file, told) in [
            (&b""[..], "empty"),
            (b"\x7fELF\x02\x01\x01\x00", "no whole 64-bit ELF file"),
            (b"\xfd7zXZ\0", "unxz"),
        ] {
            let found = found(file, "");
            assert!(found.contains(told), "{told}: {found}");
        }
    }

    #[test]
    fn disks_of_other_forms_are_refused() {
        let disk = |begins: &[u8], at: usize| {
            let mut disk = vec![0; 4096];
            disk[at..at + begins.len()].copy_from_slice(begins);
            disk
        };
        for (disk, form, remedy) in [
            (disk(b"QED\0", 0), "QED", "qemu-img convert"),
            (
                disk(b"WithoutFreeSpace", 0),
                "Parallels",
                "qemu-img convert",
            ),
            (
                disk(b"# Disk DescriptorFile\nversion=1\n", 0),
                "description",
                "qemu-img convert",
            ),
            (disk(b"\x1f\x8b", 0), "gzip", "gunzip"),
            (disk(b"\xfd7zXZ\0", 0), "xz", "unxz"),
            (disk(b"\x28\xb5\x2f\xfd", 0), "zstd", "unzstd"),
        ] {
            let found = found(&image(1 << 20), &disk);
            assert!(found.len() == 1, "{form}: {found:?}");
            assert!(found[0].contains("vm.a.disks[0].file"), "{found:?}");
            assert!(
                found[0].contains(form) && found[0].contains(remedy),
                "{form}: {found:?}"
            );
        }
        // What a guest has written to its raw disk may look like another form.
        let qcow2 = disk(b"QFI\xfb", 0);
        let raw = found_with(&image(1 << 20), &qcow2, ", raw = true");
        assert_eq!(raw, Vec::<String>::new());
        // A CD's image is a raw disk with a file system.
        assert_eq!(found(&image(1 << 20), &iso()), Vec::<String>::new());
    }

    #[test]
    fn oversized_kernels_and_cut_disks_are_found() {
        let large = found(&image(65 << 20), &[0; 512]);
        assert!(
            large[0].contains("65 MiB") && large[0].contains("64 MiB"),
            "{large:?}"
        );
        let packed = found(&gzip(&image(65 << 20)), &[0; 512]);
        assert!(packed[0].contains("65 MiB"), "{packed:?}");
        let cut = found(&image(1 << 20), &[1, 2, 3]);
        assert!(
            cut[0].contains("vm.a.disks[0].file") && cut[0].contains("3 bytes"),
            "{cut:?}"
        );
        // What was built is as large as what is the user's own, and nothing is said of what is yet to be built.
        let folder = tempfile::tempdir().unwrap();
        let text = "harts = 1\nmemory = \"1 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
                    kernel = \"image:debian/kernel\"\n";
        let document = Document::new(Path::new("a.toml"), String::from(text), &[]).unwrap();
        let system = System::read(&document).unwrap();
        let cache = Cache::new(folder.path());
        assert!(within(&document, &system, Some(&cache)).is_empty());
        fs::create_dir(folder.path().join("debian")).unwrap();
        fs::write(folder.path().join("debian/kernel"), image(65 << 20)).unwrap();
        let built = within(&document, &system, Some(&cache));
        assert!(
            built.len() == 1 && built[0].to_string().contains("65 MiB"),
            "{built:?}"
        );
        let none = found(&image(1 << 20), &[]);
        assert!(none[0].contains("empty"), "{none:?}");
    }
}
