//! Virtio over MMIO (section 4.2).

/// Offsets of the registers (section 4.2.2).
pub mod register {
    /// MagicValue.
    pub const MAGIC: u64 = 0x000;
    /// Version.
    pub const VERSION: u64 = 0x004;
    /// DeviceID.
    pub const DEVICE_ID: u64 = 0x008;
    /// VendorID.
    pub const VENDOR_ID: u64 = 0x00c;
    /// DeviceFeatures.
    pub const DEVICE_FEATURES: u64 = 0x010;
    /// DeviceFeaturesSel.
    pub const DEVICE_FEATURES_SELECT: u64 = 0x014;
    /// DriverFeatures.
    pub const DRIVER_FEATURES: u64 = 0x020;
    /// DriverFeaturesSel.
    pub const DRIVER_FEATURES_SELECT: u64 = 0x024;
    /// QueueSel.
    pub const QUEUE_SELECT: u64 = 0x030;
    /// QueueSizeMax.
    pub const QUEUE_SIZE_MAX: u64 = 0x034;
    /// QueueSize.
    pub const QUEUE_SIZE: u64 = 0x038;
    /// QueueReady.
    pub const QUEUE_READY: u64 = 0x044;
    /// QueueNotify.
    pub const QUEUE_NOTIFY: u64 = 0x050;
    /// InterruptStatus.
    pub const INTERRUPT_STATUS: u64 = 0x060;
    /// InterruptACK.
    pub const INTERRUPT_ACKNOWLEDGE: u64 = 0x064;
    /// Status.
    pub const STATUS: u64 = 0x070;
    /// QueueDescLow.
    pub const QUEUE_DESCRIPTORS: u64 = 0x080;
    /// QueueDescHigh.
    pub const QUEUE_DESCRIPTORS_HIGH: u64 = 0x084;
    /// QueueDriverLow.
    pub const QUEUE_DRIVER: u64 = 0x090;
    /// QueueDriverHigh.
    pub const QUEUE_DRIVER_HIGH: u64 = 0x094;
    /// QueueDeviceLow.
    pub const QUEUE_DEVICE: u64 = 0x0a0;
    /// QueueDeviceHigh.
    pub const QUEUE_DEVICE_HIGH: u64 = 0x0a4;
    /// SHMLenLow to SHMBaseHigh: length and address of a shared memory region.
    pub const SHARED_MEMORY: core::ops::RangeInclusive<u64> = 0x0b0..=0x0bc;
    /// ConfigGeneration.
    pub const CONFIGURATION_GENERATION: u64 = 0x0fc;
    /// Config, the first byte of the device's own configuration.
    pub const CONFIGURATION: u64 = 0x100;
}

/// Offsets of the registers of the legacy interface alone (section 4.2.4).
pub mod legacy_register {
    /// GuestPageSize.
    pub const PAGE_SIZE: u64 = 0x028;
    /// QueueAlign.
    pub const QUEUE_ALIGN: u64 = 0x03c;
    /// QueuePFN.
    pub const QUEUE_FRAME: u64 = 0x040;
}

/// MagicValue: "virt", little-endian.
pub const MAGIC: u32 = u32::from_le_bytes(*b"virt");
/// Version of a device without the legacy interface.
pub const VERSION: u32 = 2;
/// Version of a device with the legacy interface alone.
pub const LEGACY_VERSION: u32 = 1;

/// Bit of InterruptStatus: a buffer was used.
pub const USED_BUFFER: u32 = 1 << 0;
/// Bit of InterruptStatus: the configuration has changed.
pub const CONFIGURATION_CHANGE: u32 = 1 << 1;
