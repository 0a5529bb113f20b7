//! Programs that are no RISC-V Linux `Image`: an ELF file, or a flat file without a header. Each becomes an `Image`, which the hypervisor
//! loads: a header at the beginning of memory, and code behind it that jumps to the program.
//!
//! A program does not move, so its VM's memory has to begin where it does in QEMU's board: with every placement but `real`.

use object::LittleEndian;
use object::elf::{EM_RISCV, FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use std::ops::Range;

/// First address of a guest's memory, with placements other than `real`.
pub const MEMORY: u64 = 0x8000_0000;
/// Distance of a flat program from there: the one at which OpenSBI starts a program on QEMU's board.
pub const DISTANCE: u32 = 2 << 20;
/// Size of the header (Linux, `Documentation/arch/riscv/boot-image-header.rst`).
pub const HEADER: usize = 64;
/// Memory behind a flat program that it may clear before it looks for the end of memory.
const ROOM: u64 = 4 << 20;
/// The first page has the header and the jump, and no part of a program.
const FIRST: u64 = 4096;
/// A program ends below this distance from the beginning of memory.
const END: u64 = 1 << 30;
/// First bytes of an ELF file.
pub(crate) const ELF: &[u8] = b"\x7fELF";

/// Reason why an ELF file is no program for a guest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// It is broken, or for another computer.
    #[error("it is no whole 64-bit ELF file for RISC-V")]
    Form,
    /// A segment lies outside memory, or where the header is.
    #[error(
        "it is linked for {0:#x}, and a guest's memory for programs is from 0x80001000 to 0xc0000000"
    )]
    Address(u64),
    /// Its entry point is in no segment.
    #[error("its entry point {0:#x} is in no segment")]
    Entry(u64),
}

/// The beginning of an `Image` that takes `size` bytes from the beginning of memory: a header, and `code`, which begins with the address
/// of the beginning of memory in t0.
#[must_use]
pub fn headed(code: &[u32], size: u64) -> Vec<u8> {
    let mut image = Vec::with_capacity(HEADER + 4 * code.len());
    // auipc t0, 0; jalr zero, HEADER(t0)
    for instruction in [T0 << 7 | 0x17, (HEADER as u32) << 20 | T0 << 15 | 0x67] {
        image.extend(instruction.to_le_bytes());
    }
    // The offset from the beginning of memory, the size, and the flags.
    for word in [0, size, 0] {
        image.extend(word.to_le_bytes());
    }
    // Version 0.2, two reserved words, and the marks.
    image.extend(2_u32.to_le_bytes());
    image.extend([0; 12]);
    image.extend(b"RISCV\0\0\0RSC\x05");
    image.resize(HEADER, 0);
    for instruction in code {
        image.extend(instruction.to_le_bytes());
    }
    image
}

/// An `Image` with a flat program at [`DISTANCE`], where it begins.
#[must_use]
pub fn flat(program: &[u8]) -> Vec<u8> {
    let end = u64::from(DISTANCE) + program.len() as u64;
    let mut image = headed(&jump(DISTANCE), end + ROOM);
    image.resize(DISTANCE as usize, 0);
    image.extend(program);
    image
}

/// An `Image` with the segments of an ELF file at their physical addresses.
///
/// # Errors
/// The file is none for a guest.
pub fn of_elf(file: &[u8]) -> Result<Vec<u8>, ProgramError> {
    let header = FileHeader64::<LittleEndian>::parse(file).map_err(|_| ProgramError::Form)?;
    let endian = header.endian().map_err(|_| ProgramError::Form)?;
    let segments = header.program_headers(endian, file);
    let segments = segments.map_err(|_| ProgramError::Form)?;
    if header.e_machine(endian) != EM_RISCV {
        return Err(ProgramError::Form);
    }
    let entry = header.e_entry(endian);
    let (mut start, mut end) = (None, FIRST);
    let mut parts: Vec<(Range<usize>, &[u8])> = Vec::new();
    for segment in segments {
        if segment.p_type(endian) != PT_LOAD || segment.p_memsz(endian) == 0 {
            continue;
        }
        let (at, size) = (segment.p_paddr(endian), segment.p_memsz(endian));
        let distance = at.checked_sub(MEMORY).filter(|from| *from >= FIRST);
        let after = distance.and_then(|from| from.checked_add(size));
        let after = after.filter(|after| *after <= END);
        let (from, after) = distance.zip(after).ok_or(ProgramError::Address(at))?;
        let data = segment.data(endian, file);
        let data = data.map_err(|()| ProgramError::Form)?;
        let data = data.get(..data.len().min(size as usize)).unwrap_or(data);
        parts.push((from as usize..from as usize + data.len(), data));
        end = end.max(after);
        // The entry point is a virtual address; a program begins without translation.
        let into = entry.checked_sub(segment.p_vaddr(endian));
        let into = into.filter(|into| *into < size);
        start = start.or(into.map(|into| from + into));
    }
    let start = start.and_then(|start| u32::try_from(start).ok());
    let start = start.ok_or(ProgramError::Entry(entry))?;
    let mut image = headed(&jump(start), end);
    let last = parts.iter().map(|(range, _)| range.end).max();
    image.resize(last.unwrap_or(0).max(FIRST as usize), 0);
    for (range, data) in parts {
        if let Some(place) = image.get_mut(range) {
            place.copy_from_slice(data);
        }
    }
    Ok(image)
}

// Numbers of registers (RISC-V calling convention).
const T0: u32 = 5;
const T2: u32 = 7;

/// Code that jumps to the place at `distance` from the beginning of memory, whose address is in t0. The hart's number and the address of
/// the device tree stay in a0 and a1.
const fn jump(distance: u32) -> [u32; 4] {
    let upper = distance.wrapping_add(0x800) & 0xffff_f000;
    let lower = distance.wrapping_sub(upper) & 0xfff;
    [
        // lui t2, upper; addiw t2, t2, lower
        upper | T2 << 7 | 0x37,
        lower << 20 | T2 << 15 | T2 << 7 | 0x1b,
        // add t2, t2, t0; jalr zero, 0(t2)
        T0 << 20 | T2 << 15 | T2 << 7 | 0x33,
        T2 << 15 | 0x67,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file of one segment of `size` bytes at `at`, which has `data` and begins at `entry`.
    fn elf(at: u64, entry: u64, data: &[u8], size: u64) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |place: usize, bytes: &[u8]| {
            file[place..place + bytes.len()].copy_from_slice(bytes);
        };
        put(16, &2_u16.to_le_bytes());
        put(18, &EM_RISCV.0.to_le_bytes());
        put(20, &1_u32.to_le_bytes());
        put(24, &entry.to_le_bytes());
        put(32, &64_u64.to_le_bytes());
        put(52, &64_u16.to_le_bytes());
        put(54, &56_u16.to_le_bytes());
        put(56, &1_u16.to_le_bytes());
        // The segment: type, flags, offset, virtual and physical address, sizes.
        put(64, &1_u32.to_le_bytes());
        put(72, &120_u64.to_le_bytes());
        put(80, &at.to_le_bytes());
        put(88, &at.to_le_bytes());
        put(96, &(data.len() as u64).to_le_bytes());
        put(104, &size.to_le_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn segments_lie_at_their_addresses() {
        let image = of_elf(&elf(0x8020_1000, 0x8020_1002, b"program", 1 << 20)).unwrap();
        assert_eq!(&image[0x20_1000..], b"program");
        assert_eq!(&image[56..60], b"RSC\x05");
        let size = u64::from_le_bytes(image[16..24].try_into().unwrap());
        assert_eq!(size, 0x20_1000 + (1 << 20));
        // lui t2, 0x201; addiw t2, t2, 2; add t2, t2, t0; jalr zero, 0(t2)
        let code: Vec<u32> = image[64..80]
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(code, [0x0020_13b7, 0x0023_839b, 0x0053_83b3, 0x0003_8067]);
    }

    #[test]
    fn distances_are_upper_and_lower_parts() {
        // The lower part is signed: 0x1800 is 0x2000 - 0x800.
        assert_eq!(jump(0x1800)[..2], [0x0000_23b7, 0x8003_839b]);
    }

    #[test]
    fn flat_programs_begin_at_the_distance() {
        let image = flat(b"program");
        assert_eq!(&image[DISTANCE as usize..], b"program");
        // auipc x5, 0; jalr x0, 64(x5), as the manual encodes them.
        assert_eq!(image[..8], [0x97, 0x02, 0, 0, 0x67, 0x80, 0x02, 0x04]);
        let size = u64::from_le_bytes(image[16..24].try_into().unwrap());
        assert_eq!(size, (6 << 20) + 7);
    }

    #[test]
    fn hostile_files_are_refused() {
        let whole = elf(0x8020_0000, 0x8020_0000, b"program", 7);
        for cut in 0..whole.len() {
            assert!(of_elf(&whole[..cut]).is_err(), "{cut}");
        }
        let address = |at, size| of_elf(&elf(at, at, b"", size)).unwrap_err();
        for (at, size) in [
            (0x8000_0000, 8),
            (0x1000, 8),
            (u64::MAX - 4, 8),
            (0x8020_0000, u64::MAX),
            (0xbfff_fff8, 16),
        ] {
            assert_eq!(address(at, size), ProgramError::Address(at), "{at:#x}");
        }
        let outside = elf(0x8020_0000, 0x8030_0000, b"program", 7);
        assert_eq!(of_elf(&outside), Err(ProgramError::Entry(0x8030_0000)));
        let mut other = whole;
        other[18] = 62;
        assert_eq!(of_elf(&other), Err(ProgramError::Form));
    }
}
