//! Configuration of a machine's devices.

use serde::{Deserialize, Serialize};

use super::Clock;
use crate::base::Paging;
use crate::board::{BoardConfig, IommuConfig, map};

/// Numbers of the machine's devices, and how they keep time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicesConfig {
    /// Number of harts.
    pub harts: u32,
    /// Guest interrupt files a hart, 0..=63 (GEILEN).
    pub guest_files: u8,
    /// Highest interrupt identity of a file: 63, 127, ... 2047.
    pub interrupt_ids: u16,
    /// True if APLIC and interrupt files support direct delivery as well as messages. QEMU's board
    /// with IMSICs does not.
    pub direct_delivery: bool,
    /// Number of virtio-mmio slots, 0..=8.
    pub virtio_slots: usize,
    /// Host bridge of PCI, if there is one.
    pub pci: Option<BridgeConfig>,
    /// Real time at reset, in nanoseconds since 1970.
    pub epoch: u64,
    /// How cycles relate to ticks and nanoseconds.
    pub clock: Clock,
}

/// A host bridge of PCI Express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeConfig {
    /// First of its 64-bit addresses.
    pub wide: u64,
    /// IOMMU behind which its devices are, if there is one.
    pub iommu: Option<IommuConfig>,
    /// The widest page tables of the harts, which are the IOMMU's too.
    pub paging: Paging,
}

impl DevicesConfig {
    /// The devices of a board, as QEMU's has them.
    #[must_use]
    pub fn of(board: &BoardConfig) -> Self {
        Self {
            harts: board.harts,
            guest_files: board.guest_files,
            interrupt_ids: board.interrupt_ids,
            direct_delivery: false,
            virtio_slots: board.virtio_slots,
            pci: board.pci.map(|pci| BridgeConfig {
                wide: map::pci_wide(board.memory).base,
                iommu: pci.iommu,
                paging: Paging::of_mmu_type(&board.isa.mmu).unwrap_or_default(),
            }),
            epoch: 0,
            clock: board.clock,
        }
    }
}
