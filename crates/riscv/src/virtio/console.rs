//! Console device (section 5.3).

/// Feature bits (section 5.3.3).
pub mod feature {
    /// `VIRTIO_CONSOLE_F_MULTIPORT`: several ports, and queues of control messages.
    pub const MULTIPORT: u64 = 1 << 1;
    /// `VIRTIO_CONSOLE_F_EMERG_WRITE`: characters are written by the configuration.
    pub const EMERGENCY_WRITE: u64 = 1 << 2;
}

/// Control messages (section 5.3.6.2).
pub mod event {
    /// `VIRTIO_CONSOLE_DEVICE_READY`.
    pub const DEVICE_READY: u16 = 0;
    /// `VIRTIO_CONSOLE_DEVICE_ADD`.
    pub const DEVICE_ADD: u16 = 1;
    /// `VIRTIO_CONSOLE_PORT_READY`.
    pub const PORT_READY: u16 = 3;
    /// `VIRTIO_CONSOLE_CONSOLE_PORT`.
    pub const CONSOLE_PORT: u16 = 4;
    /// `VIRTIO_CONSOLE_PORT_OPEN`.
    pub const PORT_OPEN: u16 = 6;
    /// `VIRTIO_CONSOLE_PORT_NAME`.
    pub const PORT_NAME: u16 = 7;
}

/// Queue of control messages to the driver (section 5.3.2).
pub const CONTROL_RECEIVE_QUEUE: u16 = 2;
/// Queue of control messages from the driver.
pub const CONTROL_TRANSMIT_QUEUE: u16 = 3;
/// Offset of emerg_wr in the configuration (section 5.3.4).
pub const EMERGENCY_WRITE_OFFSET: u64 = 8;
/// Length of a control message without what follows it, in bytes.
pub const CONTROL_BYTES: usize = 8;
