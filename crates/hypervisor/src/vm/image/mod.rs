//! Check of a guest's kernel, and layout of kernel, initrd and device tree.
//!
//! The only format is the flat `Image` of Linux on RISC-V (Linux's
//! `Documentation/arch/riscv/boot-image-header.rst`), which other kernels use too. It says how much
//! memory it wants and runs wherever it is put, and with identity placement a guest's RAM begins
//! anywhere. Everything else is refused with the remedy.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

#[cfg(test)]
mod tests;

use core::fmt;

use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};

/// A kernel begins at a multiple of this, so that it can map itself in large leaves.
pub const KERNEL_ALIGNMENT: u64 = 2 << 20;
/// Largest device tree that a Linux kernel maps while it boots.
pub const DEVICE_TREE_LIMIT: u64 = 2 << 20;

/// Bytes of the header.
const HEADER_SIZE: usize = 64;
/// `magic2`: "RSC" and 5.
const MAGIC: &[u8] = b"RSC\x05";
/// Bit 0 of `flags`: a big-endian kernel.
const FLAG_BIG_ENDIAN: u64 = 1;
/// Offsets of the header's fields, all little-endian.
mod field {
    pub const TEXT_OFFSET: usize = 8;
    pub const IMAGE_SIZE: usize = 16;
    pub const FLAGS: usize = 24;
    pub const MAGIC: usize = 56;
}

/// Formats that are mistaken for kernels, by their first bytes.
const OTHER_FORMATS: [(&[u8], &str, &str); 7] = [
    (
        b"\x7fELF",
        "an ELF file",
        "'objcopy -O binary' makes an Image of a kernel's",
    ),
    (
        b"\x1f\x8b",
        "compressed by gzip",
        "uncompress it with 'gunzip'",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed by zstd",
        "uncompress it with 'unzstd'",
    ),
    (
        b"\xfd7zXZ\0",
        "compressed by xz",
        "uncompress it with 'unxz'",
    ),
    (
        b"BZh",
        "compressed by bzip2",
        "uncompress it with 'bunzip2'",
    ),
    (
        b"\x02\x21\x4c\x18",
        "compressed by lz4",
        "uncompress it with 'unlz4'",
    ),
    (
        b"070701",
        "a cpio archive",
        "name the initrd and the kernel the other way round",
    ),
];

/// Header of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// Bytes of RAM in front of it.
    pub text_offset: u64,
    /// Bytes of RAM that it takes: the file, and the memory that it clears behind it.
    pub size: u64,
}

/// Reason why a file is not a kernel for a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// File too short for a header.
    #[error("it has {0} bytes, fewer than the header of a kernel")]
    TooShort(usize),
    /// Another well-known format.
    #[error("it is {what}, not a flat Image; {remedy}")]
    OtherFormat {
        /// Name of the format.
        what: &'static str,
        /// Way to make an image that boots.
        remedy: &'static str,
    },
    /// No header.
    #[error("it is not a RISC-V Image: no 'RSC' at byte 56")]
    NoMagic,
    /// The guests are little-endian.
    #[error("it is a big-endian kernel")]
    BigEndian,
    /// An old header.
    #[error("its header does not say how much memory it takes")]
    NoSize,
}

impl KernelImage {
    /// Reads the header of a kernel's file.
    ///
    /// # Errors
    /// [`ImageError`], if the file is no flat RISC-V `Image`.
    pub fn parse(file: &[u8]) -> Result<Self, ImageError> {
        let magic_at = field::MAGIC..field::MAGIC.saturating_add(MAGIC.len());
        if file.get(magic_at) != Some(MAGIC) {
            return Err(other_format(file));
        }
        let too_short = || ImageError::TooShort(file.len());
        if file.len() < HEADER_SIZE {
            return Err(too_short());
        }
        let flags = read(file, field::FLAGS).ok_or_else(too_short)?;
        let text_offset = read(file, field::TEXT_OFFSET).ok_or_else(too_short)?;
        let size = read(file, field::IMAGE_SIZE).ok_or_else(too_short)?;
        if flags & FLAG_BIG_ENDIAN != 0 {
            return Err(ImageError::BigEndian);
        }
        if size == 0 {
            return Err(ImageError::NoSize);
        }
        // A signature behind the kernel makes the file longer than the header says.
        Ok(Self {
            text_offset,
            size: size.max(file.len() as u64),
        })
    }
}

fn other_format(file: &[u8]) -> ImageError {
    // A kernel that unpacks itself as an EFI program: "MZ", then "zimg" at byte 4.
    if file.starts_with(b"MZ") && file.get(4..8) == Some(b"zimg") {
        let remedy = "extract the kernel, or build 'Image' rather than 'vmlinuz.efi'";
        return ImageError::OtherFormat {
            what: "a compressed EFI program",
            remedy,
        };
    }
    let known = OTHER_FORMATS
        .iter()
        .find(|(magic, ..)| file.starts_with(magic));
    match known {
        Some(&(_, what, remedy)) => ImageError::OtherFormat { what, remedy },
        None if file.len() < HEADER_SIZE => ImageError::TooShort(file.len()),
        None => ImageError::NoMagic,
    }
}

fn read(file: &[u8], offset: usize) -> Option<u64> {
    let bytes = file.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Part of a guest that is loaded into its RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The kernel.
    Kernel,
    /// The initial RAM disk.
    Initrd,
    /// The device tree.
    DeviceTree,
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kernel => "kernel",
            Self::Initrd => "initrd",
            Self::DeviceTree => "device tree",
        })
    }
}

/// Reason why a guest's parts do not fit into its RAM.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Too little RAM.
    #[error(
        "the {part} of {wanted} bytes does not fit: {free} of the VM's {memory} bytes of memory \
         are free for it"
    )]
    DoesNotFit {
        /// Part that does not fit.
        part: Part,
        /// Bytes of the part.
        wanted: u64,
        /// Bytes that are free for it.
        free: u64,
        /// Bytes of RAM in all.
        memory: u64,
    },
    /// Linux would not map it all.
    #[error("the device tree has {0} bytes; a kernel takes at most {DEVICE_TREE_LIMIT}")]
    DeviceTreeTooLong(u64),
}

/// Addresses of a guest's parts. No two overlap, and all are within its RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The kernel with the memory that it clears; its first byte is where the boot vCPU begins.
    pub kernel: GuestRegion,
    /// The initial RAM disk.
    pub initrd: Option<GuestRegion>,
    /// The device tree.
    pub device_tree: GuestRegion,
}

impl Layout {
    /// Finds places in `memory`: the kernel at its offset from the bottom, the device tree at the
    /// top, the initrd below it, all on page boundaries.
    ///
    /// # Errors
    /// [`LayoutError`], if the parts do not fit.
    pub fn plan(
        memory: GuestRegion,
        kernel: KernelImage,
        initrd: Option<u64>,
        device_tree: u64,
    ) -> Result<Self, LayoutError> {
        if device_tree > DEVICE_TREE_LIMIT {
            return Err(LayoutError::DeviceTreeTooLong(device_tree));
        }
        let mut free = Free {
            memory,
            start: memory.base(),
            end: memory.end(),
        };
        let kernel = free.take_bottom(kernel)?;
        let device_tree = free.take_top(Part::DeviceTree, device_tree)?;
        let initrd = initrd
            .map(|size| free.take_top(Part::Initrd, size))
            .transpose()?;
        Ok(Self {
            kernel,
            initrd,
            device_tree,
        })
    }
}

/// Free memory between the kernel and the parts at the top.
struct Free {
    memory: GuestRegion,
    start: GuestPhysical,
    end: GuestPhysical,
}

impl Free {
    fn shortage(&self, part: Part, wanted: u64, start: Option<GuestPhysical>) -> LayoutError {
        let start = start.unwrap_or(self.end).raw();
        let free = self.end.raw().saturating_sub(start);
        LayoutError::DoesNotFit {
            part,
            wanted,
            free,
            memory: self.memory.size(),
        }
    }

    fn take_bottom(&mut self, image: KernelImage) -> Result<GuestRegion, LayoutError> {
        let start = self
            .start
            .checked_add(image.text_offset)
            .and_then(|address| address.align_up(KERNEL_ALIGNMENT));
        let region = start
            .and_then(|start| GuestRegion::new(start, image.size))
            .filter(|region| region.end() <= self.end)
            .ok_or_else(|| self.shortage(Part::Kernel, image.size, start))?;
        self.start = region.end();
        Ok(region)
    }

    fn take_top(&mut self, part: Part, size: u64) -> Result<GuestRegion, LayoutError> {
        let region = self
            .end
            .raw()
            .checked_sub(size)
            .map(|raw| GuestPhysical::new(raw).align_down(PAGE_SIZE))
            .filter(|&base| base >= self.start)
            .and_then(|base| GuestRegion::new(base, size))
            .ok_or_else(|| self.shortage(part, size, Some(self.start)))?;
        self.end = region.base();
        Ok(region)
    }
}
