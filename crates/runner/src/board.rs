//! Files that a board boots to run a system.

pub use guest_images::fat::{File, disk};

use object::LittleEndian;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// Where the hypervisor is linked to lie: 2 MiB into RAM that begins at 2 GiB. It runs anywhere.
pub const ADDRESS: u64 = 0x8020_0000;
/// The hypervisor's file, from the root of the file system that the board's loader reads.
pub const KERNEL: &str = "partita/hypervisor";
/// The system image's.
pub const SYSTEM: &str = "partita/system";
/// The file in which U-Boot's standard boot looks for what to boot.
pub const MENU: &str = "extlinux/extlinux.conf";
/// The hypervisor's once more, where EFI looks on a disk for what to boot (UEFI, section 3.5.1.1). It is the same file.
pub const PROGRAM: &str = "EFI/BOOT/BOOTRISCV64.EFI";
/// The mark in the header of a RISC-V kernel image, and where it stands (Linux,
/// Documentation/arch/riscv/boot-image-header.rst).
const MARK: (usize, &[u8]) = (56, b"RSC\x05");
/// More than the hypervisor takes.
const MAX_START: u64 = 64 << 20;

/// Why an ELF file is no hypervisor.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The hypervisor's file cannot be read.
    #[error("this is no ELF file of the hypervisor: {0}")]
    Elf(#[from] object::Error),
    /// The hypervisor belongs at another address, or has no header.
    #[error("this is no hypervisor for a board: {0}")]
    Foreign(&'static str),
}

/// The flat kernel image that an ELF file of the hypervisor stands for.
///
/// # Errors
/// The file is no hypervisor.
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
        let start = start.filter(|start| *start < MAX_START);
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

/// Boot menu of U-Boot (its doc/develop/distro.rst, section "Boot Configuration Files").
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
    fn kernel_image_needs_address_and_header() {
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
    fn menu_names_both_files_from_root() {
        let menu = menu();
        assert!(
            menu.contains("kernel /partita/hypervisor\n")
                && menu.contains("initrd /partita/system\n")
        );
    }
}
