//! Virtio devices (virtio 1.2): constants of all kinds, the [`transport`] that guests see, [`queue`]s, [`backend`]s, and the [`driver`] of the
//! board's own.

pub mod backend;
pub mod client;
pub mod driver;
pub mod queue;
pub mod transport;

use crate::hart::decode::Width;

/// Device type (virtio 1.2, §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DeviceKind {
    NetworkCard = 1,
    Disk = 2,
    Balloon = 5,
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

/// Offsets of the registers (virtio 1.2, table 4.1).
pub mod register {
    pub const MAGIC: u64 = 0x000;
    pub const VERSION: u64 = 0x004;
    pub const DEVICE_ID: u64 = 0x008;
    pub const VENDOR_ID: u64 = 0x00c;
    pub const DEVICE_FEATURES: u64 = 0x010;
    pub const DEVICE_FEATURES_SELECT: u64 = 0x014;
    pub const DRIVER_FEATURES: u64 = 0x020;
    pub const DRIVER_FEATURES_SELECT: u64 = 0x024;
    pub const QUEUE_SELECT: u64 = 0x030;
    pub const QUEUE_SIZE_MAX: u64 = 0x034;
    pub const QUEUE_SIZE: u64 = 0x038;
    pub const QUEUE_READY: u64 = 0x044;
    pub const QUEUE_NOTIFY: u64 = 0x050;
    pub const INTERRUPT_STATUS: u64 = 0x060;
    pub const INTERRUPT_ACKNOWLEDGE: u64 = 0x064;
    pub const STATUS: u64 = 0x070;
    /// Low halves; the high one of each follows.
    pub const QUEUE_PARTS: [u64; 3] = [0x080, 0x090, 0x0a0];
    pub const SHARED_MEMORY: core::ops::RangeInclusive<u64> = 0x0b0..=0x0bc;
    pub const CONFIGURATION_GENERATION: u64 = 0x0fc;
    pub const CONFIGURATION: u64 = 0x100;
}

/// The device status field (§2.1).
pub mod status {
    pub const ACKNOWLEDGE: u32 = 1;
    pub const DRIVER: u32 = 2;
    pub const DRIVER_OK: u32 = 4;
    pub const FEATURES_OK: u32 = 8;
    pub const NEEDS_RESET: u32 = 64;
}

/// Bits of the interrupt status.
pub const USED_BUFFER: u32 = 1;
pub const CONFIGURATION_CHANGE: u32 = 2;

/// VIRTIO_F_VERSION_1 and VIRTIO_F_ACCESS_PLATFORM (§6).
pub const VERSION_1: u64 = 1 << 32;
pub const ACCESS_PLATFORM: u64 = 1 << 33;
/// VIRTIO_F_INDIRECT_DESC and VIRTIO_F_EVENT_IDX.
pub const INDIRECT_TABLES: u64 = 1 << 28;
pub const EVENT_INDICES: u64 = 1 << 29;

/// Features of queues and of the transport that emulated devices offer.
pub const EMULATED_FEATURES: u64 = VERSION_1 | INDIRECT_TABLES | EVENT_INDICES;
/// "PTTA": the vendor of emulated devices. Any value will do.
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
