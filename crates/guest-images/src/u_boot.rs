//! U-Boot as a guest's firmware: it starts what the guest's own disk holds.
//!
//! Debian's U-Boot for S-mode on QEMU's board is linked at an address 2 MiB above the beginning of memory, and has no header. The file is an
//! image with a header (Linux, `Documentation/arch/riscv/boot-image-header.rst`) at the beginning of memory, whose code jumps to U-Boot.

use crate::error::{ImagesError, at};
use crate::recipe::{Folder, Site};
use std::fs;
use std::hash::{DefaultHasher, Hash};
use system::kernel::program::{DISTANCE, MEMORY, headed};

/// Package and the files in it.
const PACKAGE: &str = "u-boot-qemu";
const PROGRAM: &str = "usr/lib/u-boot/qemu-riscv64_smode/u-boot.bin";
const LINKED: &str = "usr/lib/u-boot/qemu-riscv64_smode/uboot.elf";
/// Memory behind the program that it clears and uses before it moves itself.
const ROOM: u64 = 4 << 20;
/// Place of the device tree's copy from the beginning of memory, and the room behind the tree.
const TREE: u32 = 4 << 10;
const TREE_ROOM: u32 = 16 << 10;
/// Place of the entry point in an ELF file of 64 bits (ELF-64 Object File Format, figure 2).
const ELF_ENTRY: std::ops::Range<usize> = 24..32;

/// The folder `u-boot`.
#[derive(Debug)]
pub(super) struct UBoot;

impl Folder for UBoot {
    fn name(&self) -> &'static str {
        "u-boot"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (PACKAGE, PROGRAM, MEMORY, DISTANCE, ROOM).hash(hasher);
        image(&[]).hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let package = site.apt()?.download(PACKAGE)?;
        let root = site.work.join("root");
        crate::apt::unpack(&package, &root)?;
        site.progress.step("making the image of U-Boot");
        let read = |name: &str| {
            let path = root.join(name);
            fs::read(&path).map_err(at(&path))
        };
        let entry = entry(&read(LINKED)?);
        if entry != Some(MEMORY + u64::from(DISTANCE)) {
            return Err(ImagesError::Missing {
                what: format!("U-Boot for {:#x}", MEMORY + u64::from(DISTANCE)),
            });
        }
        let target = site.built.join("firmware");
        fs::write(&target, image(&read(PROGRAM)?)).map_err(at(&target))
    }
}

/// The entry point of an ELF file.
fn entry(elf: &[u8]) -> Option<u64> {
    let bytes = elf.get(ELF_ENTRY)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// Image of the program, with a header and the code that prepares its start.
fn image(program: &[u8]) -> Vec<u8> {
    let end = u64::from(DISTANCE) + program.len() as u64;
    let mut image = headed(&start(), end + ROOM);
    image.resize(DISTANCE as usize, 0);
    image.extend(program);
    image
}

/// Code that copies the device tree to a place with room behind it, and jumps to U-Boot. U-Boot adds properties to the tree where the tree lies,
/// and writes over its own data if the tree is as long as its content.
///
/// On entry t0 has the beginning of memory and a1 the tree's address. Its size is the second word, the most significant byte first
/// (Devicetree Specification 0.4, §5.2).
fn start() -> [u32; 27] {
    [
        lui(T1, TREE),
        add(T1, T1, T0),
        load_byte(T3, A1, 5),
        shift_left(T3, T3, 8),
        load_byte(T4, A1, 6),
        add(T3, T3, T4),
        shift_left(T3, T3, 8),
        load_byte(T4, A1, 7),
        add(T3, T3, T4),
        add(T6, A1, T3),
        // Byte by byte.
        add_immediate(T2, T1, 0),
        load_byte(T4, A1, 0),
        store_byte(T4, T2, 0),
        add_immediate(A1, A1, 1),
        add_immediate(T2, T2, 1),
        back_if_below(A1, T6),
        // The room is a part of the copy.
        lui(T4, TREE_ROOM),
        add(T3, T3, T4),
        store_byte(T3, T1, 7),
        shift_right(T3, T3, 8),
        store_byte(T3, T1, 6),
        shift_right(T3, T3, 8),
        store_byte(T3, T1, 5),
        add_immediate(A1, T1, 0),
        lui(T2, DISTANCE),
        add(T2, T2, T0),
        jump(T2),
    ]
}

// Numbers of registers (RISC-V calling convention).
const T0: u32 = 5;
const T1: u32 = 6;
const T2: u32 = 7;
const A1: u32 = 11;
const T3: u32 = 28;
const T4: u32 = 29;
const T6: u32 = 31;

const fn lui(rd: u32, value: u32) -> u32 {
    value & 0xffff_f000 | rd << 7 | 0x37
}

const fn add(rd: u32, first: u32, second: u32) -> u32 {
    second << 20 | first << 15 | rd << 7 | 0x33
}

const fn add_immediate(rd: u32, rs: u32, value: u32) -> u32 {
    value << 20 | rs << 15 | rd << 7 | 0x13
}

const fn shift_left(rd: u32, rs: u32, by: u32) -> u32 {
    by << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x13
}

const fn shift_right(rd: u32, rs: u32, by: u32) -> u32 {
    by << 20 | rs << 15 | 5 << 12 | rd << 7 | 0x13
}

const fn load_byte(rd: u32, address: u32, offset: u32) -> u32 {
    offset << 20 | address << 15 | 4 << 12 | rd << 7 | 0x03
}

/// The offset is at most 31.
const fn store_byte(value: u32, address: u32, offset: u32) -> u32 {
    value << 20 | address << 15 | offset << 7 | 0x23
}

/// A branch to four instructions before it.
const fn back_if_below(first: u32, second: u32) -> u32 {
    // bltu with the offset -16: bits 12, 11 and 10 to 5 are set, and bits 4 to 1 are 1000.
    0x7f << 25 | second << 20 | first << 15 | 6 << 12 | 0b1000 << 8 | 1 << 7 | 0x63
}

const fn jump(address: u32) -> u32 {
    address << 15 | 0x67
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_jumps_to_the_program() {
        let image = image(b"program");
        assert_eq!(&image[DISTANCE as usize..], b"program");
        // auipc x5, 0; jalr x0, 64(x5), as the manual encodes them.
        assert_eq!(image[..8], [0x97, 0x02, 0, 0, 0x67, 0x80, 0x02, 0x04]);
        assert_eq!(&image[56..60], b"RSC\x05");
        let size = u64::from_le_bytes(image[16..24].try_into().unwrap());
        assert_eq!(size, (6 << 20) + 7);
    }

    #[test]
    fn short_files_have_no_entry() {
        assert_eq!(entry(&[0; 31]), None);
        let mut elf = [0; 64];
        elf[24..32].copy_from_slice(&0x8020_0000_u64.to_le_bytes());
        assert_eq!(entry(&elf), Some(0x8020_0000));
    }
}
