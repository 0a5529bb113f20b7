//! Devices of guests and of the board.

pub mod aplic;
pub mod board_controller;
pub mod bus;
pub mod clock;
pub mod controller;
pub mod interrupt_affinity;
pub mod iommu;
pub mod irq;
pub mod plic;
pub mod serve;
#[cfg(test)]
pub mod testing;
pub mod trapped;
pub mod trapped_devices;
pub mod uart;
pub mod virtio;
pub mod wired;
