//! The devices of the computer: one trait, one model a folder or file.
//!
//! A device knows three things about the rest of the machine, all handed to it in a [`Context`]:
//! what time it is, how to reach RAM by DMA, and where to leave its [`Effects`] (interrupt levels,
//! message-signalled interrupts, network frames). Nothing here reads a wall clock, a host random
//! source, or depends on the order of a hash table: the same accesses give the same answers.
//!
//! Everything a guest writes is an allegation. A model answers nonsense with the device's own
//! error state or with an [`AccessFault`], never with a panic and never with an endless loop.

mod aclint;
mod aplic;
mod console;
mod context;
mod devices;
mod devices_config;
mod files;
mod finisher;
mod host_console;
mod imsic;
pub mod iommu;
mod marker;
mod network;
pub mod pci;
mod places;
mod rtc;
mod target;
#[cfg(test)]
mod tests;
mod uart;
mod uplink;
pub mod virtio;

pub use aclint::Aclint;
pub use aplic::{Aplic, DomainLevel};
pub use console::{Console, Script, Silent};
pub use context::{Context, Effects, FlatMemory, LineChange, Msi, Power};
pub use devices::Devices;
pub use devices_config::{BridgeConfig, DevicesConfig};
pub use finisher::Finisher;
pub use imsic::{Imsic, Level};
pub use marker::{Marker, Watched};
pub use network::{MacAddress, Peer, PortId, Switch};
pub use rtc::Rtc;
pub use uart::Uart;
pub use uplink::{UPLINK, Uplink};

pub use crate::base::{
    AccessFault, Clock, Cycles, HartId, HartIrqLevels, InterruptFile, IrqLevels, Memory,
    NoSuchRegister, Random,
};

use host_console::HostConsole;

/// A memory-mapped device.
pub trait Device: core::fmt::Debug {
    /// Reads `size` bytes (1, 2, 4 or 8) at byte `offset` of the device's window.
    ///
    /// # Errors
    /// [`AccessFault`] when the device has nothing at that offset or does not support the width.
    fn read(
        &mut self,
        offset: u64,
        size: u8,
        context: &mut Context<'_>,
    ) -> Result<u64, AccessFault>;

    /// Writes the low `size` bytes (1, 2, 4 or 8) of `value` at byte `offset`.
    ///
    /// # Errors
    /// [`AccessFault`] when the device has nothing at that offset or does not support the width.
    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault>;

    /// Does whatever has become due by `context.now`. Called at or after the time that
    /// [`Device::next_event`] gave; calling it earlier or more often changes nothing.
    fn tick(&mut self, _context: &mut Context<'_>) {}

    /// The machine time of the device's next own action, if it has one planned.
    fn next_event(&self) -> Option<Cycles> {
        None
    }
}
