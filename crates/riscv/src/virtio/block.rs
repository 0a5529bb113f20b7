//! Block device (section 5.2).

/// Feature bits (section 5.2.3).
pub mod feature {
    /// `VIRTIO_BLK_F_SIZE_MAX`: the largest segment is in the configuration.
    pub const SIZE_MAX: u64 = 1 << 1;
    /// `VIRTIO_BLK_F_SEG_MAX`: the number of segments is in the configuration.
    pub const SEG_MAX: u64 = 1 << 2;
    /// `VIRTIO_BLK_F_RO`: the device is read-only.
    pub const READ_ONLY: u64 = 1 << 5;
    /// `VIRTIO_BLK_F_BLK_SIZE`: the block size is in the configuration.
    pub const BLOCK_SIZE: u64 = 1 << 6;
    /// `VIRTIO_BLK_F_FLUSH`: the device flushes its cache when told to.
    pub const FLUSH: u64 = 1 << 9;
    /// `VIRTIO_BLK_F_DISCARD`.
    pub const DISCARD: u64 = 1 << 13;
    /// `VIRTIO_BLK_F_WRITE_ZEROES`.
    pub const WRITE_ZEROES: u64 = 1 << 14;
}

/// Types of requests (section 5.2.6).
pub mod request {
    /// `VIRTIO_BLK_T_IN`.
    pub const READ: u32 = 0;
    /// `VIRTIO_BLK_T_OUT`.
    pub const WRITE: u32 = 1;
    /// `VIRTIO_BLK_T_FLUSH`.
    pub const FLUSH: u32 = 4;
    /// `VIRTIO_BLK_T_GET_ID`.
    pub const IDENTITY: u32 = 8;
    /// `VIRTIO_BLK_T_DISCARD`.
    pub const DISCARD: u32 = 11;
    /// `VIRTIO_BLK_T_WRITE_ZEROES`.
    pub const WRITE_ZEROES: u32 = 13;
}

/// Statuses that a request ends with (section 5.2.6).
pub mod status {
    /// `VIRTIO_BLK_S_OK`.
    pub const OK: u8 = 0;
    /// `VIRTIO_BLK_S_IOERR`.
    pub const ERROR: u8 = 1;
    /// `VIRTIO_BLK_S_UNSUPP`.
    pub const UNSUPPORTED: u8 = 2;
}

/// Length of a sector, the unit of addresses and lengths whatever the block size, in bytes.
pub const SECTOR_BYTES: u64 = 512;
/// Length of a request's header (type, reserved word, sector), in bytes.
pub const HEADER_BYTES: u64 = 16;
/// Length of the answer to [`request::IDENTITY`], in bytes.
pub const IDENTITY_BYTES: usize = 20;
/// Length of a range to discard or to fill with zeros, in bytes.
pub const RANGE_BYTES: usize = 16;
/// Flag of such a range: its blocks may be unmapped.
pub const UNMAP: u32 = 1 << 0;
