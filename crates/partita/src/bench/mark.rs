//! Marks: programs in the guest that do nothing but run where a breakpoint is.
//!
//! Each is a file of its own that is linked at an address of its own, which no other program uses. So a breakpoint
//! on that virtual address finds the guest whatever it runs on, and the guest need not know that it is watched.

/// A place in the job of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The first process has mounted what there is.
    Booted,
    /// hackbench and the checksum are done.
    Worked,
    /// Mark behind the first run of the program that reads the disk.
    Started,
    /// It has run again with few reads; the next time it does many.
    Reading,
    /// They are done.
    Read,
    /// The guest is about to power off.
    Ending,
}

impl Mark {
    /// All, in the order in which a guest comes to them.
    pub const ALL: [Self; 6] = [
        Self::Booted,
        Self::Worked,
        Self::Started,
        Self::Reading,
        Self::Read,
        Self::Ending,
    ];

    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Booted => "booted",
            Self::Worked => "worked",
            Self::Started => "started",
            Self::Reading => "reading",
            Self::Read => "read",
            Self::Ending => "ending",
        }
    }

    /// The virtual address of its first instruction. No memory and no device of the board is there, and Linux puts
    /// nothing there by itself.
    pub fn address(self) -> u64 {
        const FIRST: u64 = 0x7_0000_0000;
        const APART: u64 = 0x10_0000;
        FIRST + APART * (self as u64) + HEADERS
    }

    /// The program: an ELF file (System V ABI, "Object Files"; RISC-V ELF psABI) with one segment.
    pub fn program(self) -> Vec<u8> {
        const EXECUTABLE: u16 = 2;
        const RISCV: u16 = 243;
        /// EF_RISCV_FLOAT_ABI_DOUBLE.
        const FLAGS: u32 = 4;
        const LOAD: u32 = 1;
        const READ_AND_EXECUTE: u32 = 5;
        const PAGE: u64 = 0x1000;
        /// nop; li a0, 0; li a7, 93 (Linux's exit); ecall
        const CODE: [u32; 4] = [0x0000_0013, 0x0000_0513, 0x05d0_0893, 0x0000_0073];

        let size = HEADERS + CODE.len() as u64 * 4;
        let mut file = Vec::new();
        file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        for half in [EXECUTABLE, RISCV] {
            file.extend_from_slice(&half.to_le_bytes());
        }
        file.extend_from_slice(&1u32.to_le_bytes());
        for word in [self.address(), FILE_HEADER, 0] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&FLAGS.to_le_bytes());
        let (segments, sections) = (1, 0);
        let sizes = [
            FILE_HEADER as u16,
            SEGMENT_HEADER as u16,
            segments,
            0,
            sections,
            0,
        ];
        for half in sizes {
            file.extend_from_slice(&half.to_le_bytes());
        }
        for word in [LOAD, READ_AND_EXECUTE] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        let base = self.address() - HEADERS;
        for word in [0, base, base, size, size, PAGE] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        for instruction in CODE {
            file.extend_from_slice(&instruction.to_le_bytes());
        }
        file
    }
}

/// Sizes of the headers of a 64-bit ELF file.
const FILE_HEADER: u64 = 64;
const SEGMENT_HEADER: u64 = 56;
const HEADERS: u64 = FILE_HEADER + SEGMENT_HEADER;

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::elf::{FileHeader, ProgramHeader};
    use object::{LittleEndian, elf};

    #[test]
    fn programs_are_elf_files_with_entries() {
        for mark in Mark::ALL {
            let file = mark.program();
            let header = elf::FileHeader64::<LittleEndian>::parse(&*file).unwrap();
            assert_eq!(header.e_machine(LittleEndian), elf::EM_RISCV);
            assert_eq!(header.e_entry(LittleEndian), mark.address());
            let segments = header.program_headers(LittleEndian, &*file).unwrap();
            let [segment] = segments else {
                panic!("one segment")
            };
            let base = segment.p_vaddr(LittleEndian);
            assert_eq!(segment.p_filesz(LittleEndian), file.len() as u64);
            assert_eq!(base % segment.p_align(LittleEndian), 0);
            let at = usize::try_from(mark.address() - base).unwrap();
            // addi x0, x0, 0
            assert_eq!(&file[at..at + 4], 0x13u32.to_le_bytes());
        }
    }

    #[test]
    fn no_two_marks_share_an_address() {
        for (index, mark) in Mark::ALL.into_iter().enumerate() {
            for other in &Mark::ALL[..index] {
                assert!(mark.address() - other.address() >= 0x1000);
                assert_ne!(mark.name(), other.name());
            }
        }
    }
}
