//! Virtual I/O Device (VIRTIO), version 1.3.

pub mod balloon;
pub mod block;
pub mod console;
pub mod feature;
pub mod mmio;
pub mod network;
pub mod pci;
pub mod queue;
pub mod status;

/// Device id: network (chapter 5).
pub const NETWORK_DEVICE: u32 = 1;
/// Device id: block.
pub const BLOCK_DEVICE: u32 = 2;
/// Device id: console.
pub const CONSOLE_DEVICE: u32 = 3;
/// Device id: entropy source.
pub const ENTROPY_DEVICE: u32 = 4;
/// Device id: traditional memory balloon.
pub const BALLOON_DEVICE: u32 = 5;
