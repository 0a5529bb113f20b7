//! Bits of the device status (section 2.1).

/// The driver has found the device.
pub const ACKNOWLEDGE: u32 = 1;
/// The driver knows how to drive the device.
pub const DRIVER: u32 = 2;
/// The driver is ready.
pub const DRIVER_OK: u32 = 4;
/// The features are negotiated.
pub const FEATURES_OK: u32 = 8;
/// The device cannot go on.
pub const NEEDS_RESET: u32 = 64;
/// The driver has given up.
pub const FAILED: u32 = 128;
