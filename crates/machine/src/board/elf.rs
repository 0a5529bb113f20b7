//! ELF files: segments into RAM, and the symbols that bare-metal programs are known by.

use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};

use super::config::BoardError;
use crate::base::Memory;

/// Facts of a loaded ELF file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elf {
    /// The entry point.
    pub entry: u64,
    /// The lowest physical address of a segment.
    pub start: u64,
    /// The address after the last byte of the highest segment.
    pub end: u64,
    /// HTIF's word from the program to its host.
    pub tohost: Option<u64>,
    /// HTIF's word from the host to the program.
    pub fromhost: Option<u64>,
    /// The memory that the architecture tests compare: `begin_signature` to `end_signature`.
    pub signature: Option<(u64, u64)>,
}

/// Tests whether a file begins like an ELF file.
#[must_use]
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&elf::ELFMAG)
}

/// Loads the segments of an ELF file at their physical addresses. Memory behind a segment's file
/// contents is left as it is: RAM is zero before a machine starts.
///
/// # Errors
/// A [`BoardError`] that names `image` when the file is damaged, truncated, for another machine,
/// or does not fit in RAM.
pub fn load_elf(
    image: &'static str,
    bytes: &[u8],
    memory: &mut dyn Memory,
) -> Result<Elf, BoardError> {
    let damaged = |error: object::Error| BoardError::DamagedElf {
        image,
        reason: error.to_string(),
    };
    let foreign = |found| BoardError::ForeignImage { image, found };
    if bytes.get(4) == Some(&elf::ELFCLASS32.0) {
        return Err(foreign("a 32-bit ELF file"));
    }
    if bytes.get(5) == Some(&elf::ELFDATA2MSB.0) {
        return Err(foreign("a big-endian ELF file"));
    }
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(damaged)?;
    let endian = file.endian();
    if file.elf_header().e_machine.get(endian) != elf::EM_RISCV {
        return Err(foreign("an ELF file for another processor"));
    }

    let mut loaded = Elf {
        entry: file.entry(),
        start: u64::MAX,
        ..Elf::default()
    };
    for segment in file.elf_program_headers() {
        if segment.p_type(endian) != elf::PT_LOAD || segment.p_memsz(endian) == 0 {
            continue;
        }
        let (address, size) = (segment.p_paddr(endian), segment.p_memsz(endian));
        let does_not_fit = || BoardError::DoesNotFit {
            image,
            address,
            size,
        };
        let data = segment
            .data(endian, bytes)
            .map_err(|()| BoardError::Truncated {
                image,
                expected: segment
                    .p_offset(endian)
                    .saturating_add(segment.p_filesz(endian)),
                found: bytes.len() as u64,
            })?;
        if data.len() as u64 > size {
            let reason = "a segment has more bytes in the file than in memory".to_owned();
            return Err(BoardError::DamagedElf { image, reason });
        }
        if !memory.contains(address, size) {
            return Err(does_not_fit());
        }
        memory.store(address, data).map_err(|_| does_not_fit())?;
        loaded.start = loaded.start.min(address);
        loaded.end = loaded.end.max(address.saturating_add(size));
    }
    if loaded.start > loaded.end {
        let reason = "it has no segment to load".to_owned();
        return Err(BoardError::DamagedElf { image, reason });
    }
    read_symbols(&file, &mut loaded);
    Ok(loaded)
}

fn read_symbols(file: &ElfFile64<'_, Endianness>, loaded: &mut Elf) {
    let (mut begin, mut end) = (None, None);
    for symbol in file.symbols() {
        let slot = match symbol.name() {
            Ok("tohost") => &mut loaded.tohost,
            Ok("fromhost") => &mut loaded.fromhost,
            Ok("begin_signature") => &mut begin,
            Ok("end_signature") => &mut end,
            _ => continue,
        };
        *slot = Some(symbol.address());
    }
    loaded.signature = begin.zip(end).filter(|(begin, end)| begin <= end);
}
