//! Contents of RAM and boot ROM when the harts leave reset.
//!
//! The placement is QEMU's (measured with `info roms` on QEMU 10.0, at several memory sizes): the
//! firmware at the start of RAM, a raw kernel 2 MiB above it, the initrd half of the memory but at
//! most 512 MiB above the kernel, the device tree in the last 2 MiB-aligned place.

use super::config::{BoardConfig, BoardError};
use super::elf::{Elf, is_elf, load_elf};
use super::map;
use super::tree::device_tree;
use crate::base::Memory;

/// Distance of the kernel from the start of RAM, and the alignment of the device tree.
const LARGE_PAGE: u64 = 2 << 20;
/// The initrd stands at most this far above the kernel.
const INITRD_DISTANCE: u64 = 512 << 20;
/// Offset of the `fw_dynamic_info` structure in the boot ROM.
const DYNAMIC_INFO_OFFSET: u64 = 40;

/// The files to boot.
#[derive(Debug, Clone, Copy, Default)]
pub struct Images<'a> {
    /// OpenSBI's `fw_dynamic.bin`, or an ELF file.
    pub firmware: &'a [u8],
    /// A raw `Image` or an ELF file.
    pub kernel: Option<&'a [u8]>,
    /// The initial RAM disk.
    pub initrd: Option<&'a [u8]>,
}

/// How the harts start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Contents of the boot ROM from [`map::ROM`]: the reset vector, which every hart runs in
    /// M-mode from the ROM's first address with all registers zero, and what it refers to.
    pub rom: Vec<u8>,
    /// Where the reset vector jumps to.
    pub entry: u64,
    /// Physical address of the device tree, in a1 at the entry (a0 is mhartid).
    pub device_tree: u64,
    /// Physical address of `fw_dynamic_info`, in a2 at the entry.
    pub dynamic_info: u64,
    /// Facts of the program that was given: the kernel if it is an ELF file, or the
    /// bare-metal program.
    pub program: Elf,
}

/// Loads firmware, kernel and initrd and writes the device tree.
///
/// # Errors
/// A [`BoardError`] when the board cannot exist, or a file is empty, damaged, foreign or too large.
pub fn load(
    config: &BoardConfig,
    images: &Images<'_>,
    memory: &mut dyn Memory,
) -> Result<Boot, BoardError> {
    config.check()?;
    let firmware = place("firmware", images.firmware, map::RAM, memory)?;
    let kernel_start = firmware.end.next_multiple_of(LARGE_PAGE);
    let mut occupied = vec![("firmware", firmware.start, firmware.end)];
    let mut kernel = Elf::default();
    if let Some(bytes) = images.kernel {
        kernel = place("kernel", bytes, kernel_start, memory)?;
        occupied.push(("kernel", kernel.start, kernel.end));
    }
    let mut initrd = None;
    if let Some(bytes) = images.initrd {
        let base = if images.kernel.is_some() {
            kernel.start
        } else {
            kernel_start
        };
        let distance = (config.memory / 2).min(INITRD_DISTANCE);
        let start = base
            .saturating_add(distance)
            .max(kernel.end)
            .next_multiple_of(4096);
        let placed = store("initrd", bytes, start, memory)?;
        occupied.push(("initrd", start, placed));
        initrd = Some((start, placed));
    }
    let device_tree = place_device_tree(config, initrd, memory, &mut occupied)?;
    refuse_overlap(&mut occupied)?;
    let rom = reset_vector(firmware.entry, device_tree, kernel.entry);
    Ok(Boot {
        rom,
        entry: firmware.entry,
        device_tree,
        dynamic_info: map::ROM.base + DYNAMIC_INFO_OFFSET,
        program: kernel,
    })
}

/// Loads a bare-metal program, an ELF file that starts in M-mode, and writes the device tree.
///
/// # Errors
/// A [`BoardError`] when the board cannot exist, or the file is damaged, foreign or too large.
pub fn load_bare(
    config: &BoardConfig,
    program: &[u8],
    memory: &mut dyn Memory,
) -> Result<Boot, BoardError> {
    config.check()?;
    if !is_elf(program) {
        return Err(BoardError::NotElf { image: "program" });
    }
    let program = load_elf("program", program, memory)?;
    let mut occupied = vec![("program", program.start, program.end)];
    let device_tree = place_device_tree(config, None, memory, &mut occupied)?;
    refuse_overlap(&mut occupied)?;
    Ok(Boot {
        rom: reset_vector(program.entry, device_tree, 0),
        entry: program.entry,
        device_tree,
        dynamic_info: map::ROM.base + DYNAMIC_INFO_OFFSET,
        program,
    })
}

/// Loads an ELF file where it wants to be, anything else at `address`.
fn place(
    image: &'static str,
    bytes: &[u8],
    address: u64,
    memory: &mut dyn Memory,
) -> Result<Elf, BoardError> {
    if is_elf(bytes) {
        return load_elf(image, bytes, memory);
    }
    refuse_foreign(image, bytes)?;
    let end = store(image, bytes, address, memory)?;
    let end = end.max(address.saturating_add(linux_image_size(bytes).unwrap_or(0)));
    Ok(Elf {
        entry: address,
        start: address,
        end,
        ..Elf::default()
    })
}

fn store(
    image: &'static str,
    bytes: &[u8],
    address: u64,
    memory: &mut dyn Memory,
) -> Result<u64, BoardError> {
    let size = bytes.len() as u64;
    if size == 0 {
        return Err(BoardError::Truncated {
            image,
            expected: 1,
            found: 0,
        });
    }
    memory
        .store(address, bytes)
        .map(|()| address + size)
        .map_err(|_| BoardError::DoesNotFit {
            image,
            address,
            size,
        })
}

/// The effective size, with what follows the file's contents, that the header of a RISC-V Linux
/// `Image` gives (Linux, Documentation/arch/riscv/boot-image-header.rst).
fn linux_image_size(bytes: &[u8]) -> Option<u64> {
    const MAGIC: &[u8] = b"RSC\x05";
    if bytes.get(56..60)? != MAGIC {
        return None;
    }
    bytes.get(16..24)?.try_into().ok().map(u64::from_le_bytes)
}

/// Refuses what is known not to be code for this machine.
fn refuse_foreign(image: &'static str, bytes: &[u8]) -> Result<(), BoardError> {
    let found = if bytes.starts_with(&[0x1f, 0x8b]) {
        "a gzip file, which has to be unpacked first"
    } else if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        "a zstd file, which has to be unpacked first"
    } else if bytes.get(4..8) == Some(b"zimg") {
        "a compressed EFI image, which has to be unpacked first"
    } else if bytes.get(56..60) == Some(b"ARM\x64") {
        "a Linux image for Arm"
    } else if bytes.get(0x202..0x206) == Some(b"HdrS") {
        "a Linux image for x86"
    } else {
        return refuse_truncated(image, bytes);
    };
    Err(BoardError::ForeignImage { image, found })
}

/// Refuses a Linux `Image` that is shorter than the sections of its PE header, which EFI-capable
/// images carry, say.
fn refuse_truncated(image: &'static str, bytes: &[u8]) -> Result<(), BoardError> {
    if linux_image_size(bytes).is_none() || !bytes.starts_with(b"MZ") {
        return Ok(());
    }
    let half = |at: usize| {
        let field = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(usize::from(u16::from_le_bytes(field)))
    };
    let word = |at: usize| {
        let field = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(field)).ok()
    };
    // COFF: the number of sections and the size of the optional header at 6 and 20 of the header,
    // then 40 bytes a section, with the size and place of its contents at 16 and 20.
    let contents_end = || {
        let header = word(0x3c)?;
        let sections = half(header.checked_add(6)?)?;
        let table = header
            .checked_add(24)?
            .checked_add(half(header.checked_add(20)?)?)?;
        let mut end = 0;
        for section in 0..sections {
            let entry = table.checked_add(section * 40)?;
            let (size, place) = (word(entry.checked_add(16)?)?, word(entry.checked_add(20)?)?);
            end = end.max(place.checked_add(size)?);
        }
        Some(end)
    };
    match contents_end() {
        Some(end) if end <= bytes.len() => Ok(()),
        end => Err(BoardError::Truncated {
            image,
            expected: end.unwrap_or(0x1000) as u64,
            found: bytes.len() as u64,
        }),
    }
}

fn place_device_tree(
    config: &BoardConfig,
    initrd: Option<(u64, u64)>,
    memory: &mut dyn Memory,
    occupied: &mut Vec<(&'static str, u64, u64)>,
) -> Result<u64, BoardError> {
    let tree = device_tree(config, initrd)?;
    let size = tree.len() as u64;
    let end = map::RAM.saturating_add(config.memory);
    let address = end.saturating_sub(size) / LARGE_PAGE * LARGE_PAGE;
    let end = store("device tree", &tree, address, memory)?;
    occupied.push(("device tree", address, end));
    Ok(address)
}

fn refuse_overlap(occupied: &mut [(&'static str, u64, u64)]) -> Result<(), BoardError> {
    occupied.sort_by_key(|&(_, start, _)| start);
    for pair in occupied.windows(2) {
        if let [(first, _, end), (second, start, _)] = *pair
            && end > start
        {
            return Err(BoardError::Overlap { first, second });
        }
    }
    Ok(())
}

/// The boot ROM: hart id, device tree and `fw_dynamic_info` in a0 to a2, then a jump to the entry.
///
/// `fw_dynamic_info` (OpenSBI, include/sbi/fw_dynamic.h, version 2) holds six 64-bit words: magic,
/// version, address of the next stage, its mode (1: supervisor), options, preferred boot hart.
fn reset_vector(entry: u64, device_tree: u64, next: u64) -> Vec<u8> {
    const MAGIC: u64 = 0x4942_534f;
    const VERSION: u64 = 2;
    const SUPERVISOR: u64 = 1;
    const CODE: [u32; 6] = [
        0x0000_0297, // auipc t0, 0
        0x0282_8613, // addi a2, t0, 40
        0xf140_2573, // csrr a0, mhartid
        0x0202_b583, // ld a1, 32(t0)
        0x0182_b283, // ld t0, 24(t0)
        0x0002_8067, // jr t0
    ];
    let words = [entry, device_tree, MAGIC, VERSION, next, SUPERVISOR, 0, 0];
    let code = CODE.iter().flat_map(|word| word.to_le_bytes());
    code.chain(words.iter().flat_map(|word| word.to_le_bytes()))
        .collect()
}
