//! Network device (section 5.1).

/// Feature bits (section 5.1.3).
pub mod feature {
    /// `VIRTIO_NET_F_MTU`: the largest frame is in the configuration.
    pub const MTU: u64 = 1 << 3;
    /// `VIRTIO_NET_F_MAC`: the address is in the configuration.
    pub const MAC: u64 = 1 << 5;
    /// `VIRTIO_NET_F_STATUS`: the state of the link is in the configuration.
    pub const STATUS: u64 = 1 << 16;
}

/// Queue of received frames (section 5.1.2).
pub const RECEIVE_QUEUE: u16 = 0;
/// Queue of frames to transmit.
pub const TRANSMIT_QUEUE: u16 = 1;

/// Bit of the configuration's status: the link is up (section 5.1.4).
pub const LINK_UP: u16 = 1;

/// Length of the header before a frame, in bytes, while neither hashes nor tunnels are negotiated (section 5.1.6).
pub const HEADER_BYTES: usize = 12;
