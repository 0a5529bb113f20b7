//! Virtio devices (virtio 1.2): the [`transport`] that guests see, [`queue`]s, [`backend`]s, and the [`driver`] of the
//! board's own.

pub mod backend;
pub mod client;
pub mod driver;
pub mod queue;
pub mod transport;

pub use riscv::virtio::feature::{ACCESS_PLATFORM, EVENT_INDEX, INDIRECT_DESCRIPTORS, VERSION_1};
pub use riscv::virtio::mmio::{CONFIGURATION_CHANGE, USED_BUFFER, register};
pub use riscv::virtio::status;

use riscv::virtio::{BALLOON_DEVICE, BLOCK_DEVICE, NETWORK_DEVICE};

use crate::hart::decode::Width;

/// Device type (virtio 1.2, §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DeviceKind {
    NetworkCard = NETWORK_DEVICE,
    Disk = BLOCK_DEVICE,
    Balloon = BALLOON_DEVICE,
}

impl core::fmt::Display for DeviceKind {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.write_str(match self {
            Self::NetworkCard => "network card",
            Self::Disk => "disk",
            Self::Balloon => "balloon",
        })
    }
}

/// Offsets of the low halves of a queue's three addresses; the high half of each follows.
pub const QUEUE_PARTS: [u64; 3] = [
    register::QUEUE_DESCRIPTORS,
    register::QUEUE_DRIVER,
    register::QUEUE_DEVICE,
];

/// Features of queues and of the transport that emulated devices offer.
pub const EMULATED_FEATURES: u64 = VERSION_1 | INDIRECT_DESCRIPTORS | EVENT_INDEX;
/// "PTTA": the vendor of emulated devices (virtio 1.2, 4.2.2). It differs from the machine's, so that a guest tells devices of the
/// hypervisor from those of the board.
pub const VENDOR: u32 = 0x4154_5450;

/// Bytes of the configuration structure of the device with this id (virtio 1.2, §5.1.4 and the like of the other kinds); of an unknown kind, the
/// maximum of all.
#[must_use]
pub const fn configuration_bytes(id: u32) -> usize {
    match id {
        // No device; network card; entropy source.
        0 | 4 => 0,
        1 => 24,
        // Disk, with the fields of zones that version 1.3 adds.
        2 => 96,
        // Console, balloon, SCSI host, GPU, input, crypto, socket.
        3 => 12,
        5 => 16,
        8 => 36,
        16 => 16,
        18 => 136,
        20 => 56,
        19 => 8,
        // Sound, file system, persistent memory.
        25 => 16,
        26 => 44,
        27 => 16,
        _ => 256,
    }
}

/// Returns true if the driver of the device with this id may write a field of that width at this offset of the configuration.
#[must_use]
pub const fn is_writable(id: u32, offset: u64, width: Width) -> bool {
    matches!(
        (id, offset, width),
        // A disk's `writeback`, a console's `emerg_wr`, a balloon's `actual` and `poison_val`.
        (2, 32, Width::Byte) | (3, 8, Width::Word) | (5, 4 | 12, Width::Word)
        // A SCSI host's `sense_size` and `cdb_size`, a GPU's `events_clear`, an input's `select` and `subsel`.
        | (8, 20 | 24, Width::Word) | (16, 4, Width::Word) | (18, 0 | 1, Width::Byte)
    )
}

/// A register of 64 bits with its low half replaced.
#[must_use]
pub const fn with_low(whole: u64, low: u32) -> u64 {
    whole >> 32 << 32 | low as u64
}

/// A register of 64 bits with its high half replaced.
#[must_use]
pub const fn with_high(whole: u64, high: u32) -> u64 {
    (high as u64) << 32 | whole as u32 as u64
}
