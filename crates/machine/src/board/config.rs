//! Parts of a board, and errors in their description.

use serde::{Deserialize, Serialize};

use super::map;
use crate::base::Clock;
use crate::extension::{Extensions, Isa, PURGE_MASK, PURGE_MASK_HARTS};

/// A host bridge of PCI Express.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciConfig {
    /// IOMMU behind which the bridge's devices are, if there is one.
    pub iommu: Option<IommuConfig>,
}

/// How much an IOMMU keeps, and what it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IommuConfig {
    /// Device contexts, and process contexts, that it keeps.
    pub contexts: u16,
    /// Translations that it keeps.
    pub entries: u16,
    /// True if it has MSI page tables, which lead to files in memory too, and contexts of 64 bytes.
    pub message_tables: bool,
}

impl Default for IommuConfig {
    fn default() -> Self {
        Self {
            contexts: 16,
            entries: 64,
            message_tables: true,
        }
    }
}

/// A board's make-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardConfig {
    /// Number of harts.
    pub harts: u32,
    /// Bytes of RAM.
    pub memory: u64,
    /// Guest interrupt files a hart, 0..=63.
    pub guest_files: u8,
    /// Highest interrupt identity of each interrupt file: 63, 127, ... 2047.
    pub interrupt_ids: u16,
    /// Number of virtio-mmio slots, 0..=8.
    pub virtio_slots: usize,
    /// Host bridge of PCI Express, if there is one.
    pub pci: Option<PciConfig>,
    /// Frequencies.
    pub clock: Clock,
    /// Instruction set of the harts.
    pub isa: Isa,
    /// The kernel's command line.
    pub bootargs: String,
    /// Seed of `rng-seed`.
    pub seed: u64,
}

/// Why a board cannot be built or loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// The number of harts is out of range.
    #[error("{0} harts: a board has 1 to {max}", max = map::HARTS)]
    Harts(u32),
    /// More guest files than hgeie has bits.
    #[error("{0} guest interrupt files: a hart has 0 to 63")]
    GuestFiles(u8),
    /// The interrupt files' pages do not fit in their window.
    #[error("{harts} harts with {guest_files} guest interrupt files do not fit in the address map")]
    ImsicWindow {
        /// Harts asked for.
        harts: u32,
        /// Guest files asked for.
        guest_files: u8,
    },
    /// Not one less than a multiple of 64 within range.
    #[error("{0} interrupt identities: must be one less than a multiple of 64, 63 to 2047")]
    InterruptIds(u16),
    /// More harts than a purge mask has bits.
    #[error(
        "{0} harts with {PURGE_MASK}: its mask has {PURGE_MASK_HARTS} bits; take fewer harts or \
         leave extensions.purge_mask out of the profile"
    )]
    PurgeMask(u32),
    /// Too many virtio slots.
    #[error("{0} virtio slots: a board has at most {max}", max = map::VIRTIO_SLOTS)]
    VirtioSlots(usize),
    /// RAM is empty, not whole pages, or more than the board has room for.
    #[error("{0} bytes of memory: must be whole 4 KiB pages, at least 4 MiB and at most 256 GiB")]
    Memory(u64),
    /// An image does not fit in RAM where it belongs.
    #[error("the {image} ({size} bytes at {address:#x}) does not fit in memory")]
    DoesNotFit {
        /// Image that was to be loaded.
        image: &'static str,
        /// Where.
        address: u64,
        /// How much.
        size: u64,
    },
    /// Two images want the same memory.
    #[error("the {first} and the {second} overlap in memory: give the machine more memory")]
    Overlap {
        /// The lower one.
        first: &'static str,
        /// The higher one.
        second: &'static str,
    },
    /// An ELF file that cannot be read.
    #[error("the {image} is a damaged ELF file: {reason}")]
    DamagedElf {
        /// Image that was to be loaded.
        image: &'static str,
        /// Description of the fault.
        reason: String,
    },
    /// A file of another kind, where only an ELF file says where it wants to be.
    #[error("the {image} is not an ELF file")]
    NotElf {
        /// Image that was to be loaded.
        image: &'static str,
    },
    /// Something for another machine.
    #[error("the {image} is not for a 64-bit little-endian RISC-V machine: {found}")]
    ForeignImage {
        /// Image that was to be loaded.
        image: &'static str,
        /// Format that was found.
        found: &'static str,
    },
    /// An empty or truncated image.
    #[error("the {image} is truncated: {expected} bytes expected, {found} found")]
    Truncated {
        /// Image that was to be loaded.
        image: &'static str,
        /// Bytes that its header promises.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// The device tree cannot be written.
    #[error("the device tree cannot be written: {0}")]
    DeviceTree(String),
}

impl BoardConfig {
    /// Checks that a board of this make-up can exist.
    ///
    /// # Errors
    /// The [`BoardError`] of the first thing that is out of range.
    pub fn check(&self) -> Result<(), BoardError> {
        if !(1..=map::HARTS).contains(&self.harts) {
            return Err(BoardError::Harts(self.harts));
        }
        if self.guest_files > 63 {
            return Err(BoardError::GuestFiles(self.guest_files));
        }
        if !(63..=2047).contains(&self.interrupt_ids) || self.interrupt_ids % 64 != 63 {
            return Err(BoardError::InterruptIds(self.interrupt_ids));
        }
        let pages = u64::from(self.harts) << map::guest_index_bits(self.guest_files);
        if pages * map::IMSIC_PAGE > map::IMSIC_SUPERVISOR.size {
            let (harts, guest_files) = (self.harts, self.guest_files);
            return Err(BoardError::ImsicWindow { harts, guest_files });
        }
        if self.harts > PURGE_MASK_HARTS && Extensions::of(&self.isa).purge_mask {
            return Err(BoardError::PurgeMask(self.harts));
        }
        if self.virtio_slots > map::VIRTIO_SLOTS {
            return Err(BoardError::VirtioSlots(self.virtio_slots));
        }
        let end = map::RAM.checked_add(self.memory);
        if self.memory < 4 << 20
            || self.memory > 256 << 30
            || !self.memory.is_multiple_of(4096)
            || end.is_none_or(|end| end >> 56 != 0)
        {
            return Err(BoardError::Memory(self.memory));
        }
        Ok(())
    }
}
