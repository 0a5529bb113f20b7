//! Split virtqueues (section 2.7).

/// Flag of a descriptor: the chain goes on (section 2.7.5).
pub const NEXT: u16 = 1;
/// Flag of a descriptor: the device writes the buffer.
pub const WRITE: u16 = 2;
/// Flag of a descriptor: the buffer is a table of descriptors (section 2.7.5.3).
pub const INDIRECT: u16 = 4;
/// Length of a descriptor, in bytes.
pub const DESCRIPTOR_BYTES: u64 = 16;

/// Flag of the available ring: the driver wants no interrupt (section 2.7.6).
pub const NO_INTERRUPT: u16 = 1;
/// Flag of the used ring: the device wants no notification (section 2.7.8).
pub const NO_NOTIFY: u16 = 1;
/// Length of the flags and the index before the entries of either ring, in bytes.
pub const RING_HEADER_BYTES: u64 = 4;
/// Length of an entry of the used ring, in bytes.
pub const USED_ENTRY_BYTES: u64 = 8;
