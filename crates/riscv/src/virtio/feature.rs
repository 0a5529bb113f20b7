//! Feature bits that do not depend on the device (chapter 6).

/// `VIRTIO_F_INDIRECT_DESC`: descriptors in tables of their own.
pub const INDIRECT_DESCRIPTORS: u64 = 1 << 28;
/// `VIRTIO_F_EVENT_IDX`: each side says which entry it wants to hear of.
pub const EVENT_INDEX: u64 = 1 << 29;
/// `VIRTIO_F_VERSION_1`.
pub const VERSION_1: u64 = 1 << 32;
/// `VIRTIO_F_ACCESS_PLATFORM`: addresses are what the platform's devices use.
pub const ACCESS_PLATFORM: u64 = 1 << 33;
