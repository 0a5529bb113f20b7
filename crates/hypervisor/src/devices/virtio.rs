//! What all virtio devices on a bus of registers have in common: offsets, states, features (virtio 1.2).

/// What a device is (virtio 1.2, §5).
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
    pub const QUEUE_SIZE_MOST: u64 = 0x034;
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
