//! Memory that the hypervisor's file takes, and the addresses in it that enter a guest.

use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, ReadRef};

/// SRET (Privileged ISA, "Trap-Return Instructions").
const SRET: [u8; 4] = 0x1020_0073u32.to_le_bytes();

/// The hypervisor's ELF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes that are loaded from the file: code, constants and initialised data.
    pub loaded: u64,
    /// Bytes of memory that the image takes, the heap and the first stack among them.
    pub in_memory: u64,
    /// Addresses of its SRETs.
    pub returns: Vec<u64>,
}

impl Footprint {
    /// Reads a file.
    ///
    /// # Errors
    /// It is no 64-bit little-endian ELF file.
    pub fn read(file: &[u8]) -> Result<Self, object::Error> {
        let header = FileHeader64::<LittleEndian>::parse(file)?;
        let endian = header.endian()?;
        let mut footprint = Self {
            loaded: 0,
            in_memory: 0,
            returns: Vec::new(),
        };
        for segment in header.program_headers(endian, file)? {
            if segment.p_type(endian) != PT_LOAD {
                continue;
            }
            footprint.loaded += segment.p_filesz(endian);
            footprint.in_memory += segment.p_memsz(endian);
            if !segment.p_flags(endian).contains(PF_X) {
                continue;
            }
            let range = (segment.p_offset(endian), segment.p_filesz(endian));
            let code = file.read_bytes_at(range.0, range.1).unwrap_or_default();
            // Instructions begin at every second byte; the middle of one that looks like an SRET is never executed.
            let places = code.windows(SRET.len()).step_by(2).enumerate();
            let found = places.filter(|(_, bytes)| *bytes == SRET);
            let base = segment.p_vaddr(endian);
            footprint
                .returns
                .extend(found.map(|(index, _)| base + 2 * index as u64));
        }
        Ok(footprint)
    }
}
