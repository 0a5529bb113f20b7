//! The transport over PCI (virtio 1.2, 4.1).

/// Vendor of all devices.
pub const VENDOR: u16 = 0x1af4;
/// Device id, less the type of the device.
pub const DEVICE: u16 = 0x1040;
/// No vector: the event raises no message.
pub const NO_VECTOR: u16 = 0xffff;

/// Types of the structures that capabilities describe (4.1.4).
pub mod structure {
    /// Common configuration.
    pub const COMMON: u8 = 1;
    /// Notifications.
    pub const NOTIFY: u8 = 2;
    /// Interrupt status.
    pub const ISR: u8 = 3;
    /// Configuration of the type of device.
    pub const DEVICE: u8 = 4;
    /// Accesses through configuration space.
    pub const ACCESS: u8 = 5;
}

/// Offsets in the common configuration (4.1.4.3).
pub mod common {
    /// `device_feature_select`.
    pub const DEVICE_FEATURE_SELECT: u64 = 0x00;
    /// `device_feature`.
    pub const DEVICE_FEATURE: u64 = 0x04;
    /// `driver_feature_select`.
    pub const DRIVER_FEATURE_SELECT: u64 = 0x08;
    /// `driver_feature`.
    pub const DRIVER_FEATURE: u64 = 0x0c;
    /// `config_msix_vector`.
    pub const CONFIGURATION_VECTOR: u64 = 0x10;
    /// `num_queues`.
    pub const QUEUES: u64 = 0x12;
    /// `device_status`.
    pub const STATUS: u64 = 0x14;
    /// `config_generation`.
    pub const GENERATION: u64 = 0x15;
    /// `queue_select`.
    pub const QUEUE_SELECT: u64 = 0x16;
    /// `queue_size`.
    pub const QUEUE_SIZE: u64 = 0x18;
    /// `queue_msix_vector`.
    pub const QUEUE_VECTOR: u64 = 0x1a;
    /// `queue_enable`.
    pub const QUEUE_ENABLE: u64 = 0x1c;
    /// `queue_notify_off`.
    pub const QUEUE_NOTIFY_OFFSET: u64 = 0x1e;
    /// `queue_desc`.
    pub const QUEUE_DESCRIPTORS: u64 = 0x20;
    /// `queue_driver`.
    pub const QUEUE_DRIVER: u64 = 0x28;
    /// `queue_device`.
    pub const QUEUE_DEVICE: u64 = 0x30;
    /// Bytes of the structure.
    pub const BYTES: u64 = 0x38;
}

/// Bits of the interrupt status (4.1.4.5).
pub mod isr {
    /// A queue has news.
    pub const QUEUE: u8 = 1 << 0;
    /// The configuration has changed.
    pub const CONFIGURATION: u8 = 1 << 1;
}
