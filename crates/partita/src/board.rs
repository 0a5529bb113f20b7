//! What a board boots to run a system.

use object::LittleEndian;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// Where the hypervisor belongs: 2 MiB into RAM that begins at 2 GiB.
pub const ADDRESS: u64 = 0x8020_0000;
/// The hypervisor's file, from the root of the file system that the board's loader reads.
pub const KERNEL: &str = "partita/hypervisor";
/// The system image's.
pub const SYSTEM: &str = "partita/system";
/// The file in which U-Boot's standard boot looks for what to boot.
pub const MENU: &str = "extlinux/extlinux.conf";
/// The mark in the header of a RISC-V kernel image, and where it stands (Linux,
/// Documentation/arch/riscv/boot-image-header.rst).
const MARK: (usize, &[u8]) = (56, b"RSC\x05");
/// More than the hypervisor takes.
const MOST: u64 = 64 << 20;

/// A sector of a disk in bytes, and the first one of the partition.
const SECTOR: u64 = 512;
const FIRST: u32 = 2048;
/// The kind of a partition of Linux, and that of one that is booted from.
const LINUX: u8 = 0x83;
const BOOTED: u8 = 0x80;

/// The bytes in front of a disk's one partition of so many bytes: a master boot record, with no code in it.
pub fn disk_head(partition: u64) -> Vec<u8> {
    let sectors = u32::try_from(partition / SECTOR).unwrap_or(u32::MAX);
    let mut head = vec![0; FIRST as usize * SECTOR as usize];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = head.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    // The first of four entries: flag, three bytes of an old kind of address, type, three more, first sector, sectors.
    put(446, &[BOOTED, 0, 0, 0, LINUX, 0, 0, 0]);
    put(454, &FIRST.to_le_bytes());
    put(458, &sectors.to_le_bytes());
    put(510, &[0x55, 0xaa]);
    head
}

/// Why an ELF file is no hypervisor.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// It cannot be read.
    #[error("this is no ELF file of the hypervisor: {0}")]
    Elf(#[from] object::Error),
    /// It belongs elsewhere, or has no header.
    #[error("this is no hypervisor for a board: {0}")]
    Foreign(&'static str),
}

/// The flat kernel image that an ELF file of the hypervisor stands for.
///
/// # Errors
/// It is none.
pub fn kernel_image(elf: &[u8]) -> Result<Vec<u8>, KernelError> {
    let header = FileHeader64::<LittleEndian>::parse(elf)?;
    let endian = header.endian()?;
    let mut image = Vec::new();
    for segment in header.program_headers(endian, elf)? {
        let data = segment
            .data(endian, elf)
            .map_err(|()| KernelError::Foreign("a part of it is cut"))?;
        if segment.p_type(endian) != PT_LOAD || data.is_empty() {
            continue;
        }
        let start = segment.p_paddr(endian).checked_sub(ADDRESS);
        let start = start.filter(|start| *start < MOST);
        let start = start.ok_or(KernelError::Foreign("it is linked for another address"))?;
        let start = usize::try_from(start).unwrap_or_default();
        let end = start + data.len();
        if image.len() < end {
            image.resize(end, 0);
        }
        if let Some(place) = image.get_mut(start..end) {
            place.copy_from_slice(data);
        }
    }
    let (at, mark) = MARK;
    if image.get(at..at + mark.len()) != Some(mark) {
        return Err(KernelError::Foreign("it has no header of a kernel image"));
    }
    Ok(image)
}

/// What U-Boot reads (its doc/develop/distro.rst, section "Boot Configuration Files").
pub fn menu() -> String {
    format!(
        "default partita\nprompt 0\ntimeout 10\n\nlabel partita\n    kernel /{KERNEL}\n    initrd /{SYSTEM}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with one segment of these bytes at this address.
    fn elf(address: u64, bytes: &[u8]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        for half in [2_u16, 243] {
            file.extend(half.to_le_bytes());
        }
        file.extend(1_u32.to_le_bytes());
        for word in [address, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(0_u32.to_le_bytes());
        for half in [64_u16, 56, 1, 64, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        file.extend([1_u32, 5].map(u32::to_le_bytes).as_flattened());
        let size = bytes.len() as u64;
        for word in [120, address, address, size, size + 4096, 4096] {
            file.extend(u64::to_le_bytes(word));
        }
        file.extend(bytes);
        file
    }

    #[test]
    fn only_what_is_linked_for_its_place_and_has_a_header_is_a_hypervisor() {
        let mut bytes = vec![0x13; 80];
        bytes[56..60].copy_from_slice(b"RSC\x05");
        assert_eq!(kernel_image(&elf(ADDRESS, &bytes)).unwrap(), bytes);
        for wrong in [
            elf(ADDRESS, &[0x13; 80]),
            elf(ADDRESS, &bytes[..57]),
            elf(ADDRESS - 4096, &bytes),
            elf(u64::MAX - 8, &bytes),
            elf(ADDRESS, &bytes)[..150].to_vec(),
            bytes.clone(),
            Vec::new(),
        ] {
            assert!(kernel_image(&wrong).is_err());
        }
    }

    #[test]
    fn a_disks_head_has_one_partition_behind_it() {
        let head = disk_head(96 << 20);
        assert_eq!(head.len(), 1 << 20);
        assert_eq!(
            head[446..462],
            [0x80, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 3, 0]
        );
        assert_eq!(head[510..512], [0x55, 0xaa]);
        assert!(
            head[..446]
                .iter()
                .chain(&head[462..510])
                .all(|byte| *byte == 0)
        );
    }

    #[test]
    fn the_menu_names_both_files_from_the_root() {
        let menu = menu();
        assert!(
            menu.contains("kernel /partita/hypervisor\n")
                && menu.contains("initrd /partita/system\n")
        );
    }
}
