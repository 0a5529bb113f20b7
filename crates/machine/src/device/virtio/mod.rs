//! virtio devices, and the memory-mapped transport (virtio 1.2, §4.2), version 2. The transport over PCI is in [`super::pci`].

mod block;
mod console;
mod core;
mod disk;
mod entropy;
mod model;
mod net;
mod queue;
mod service;
mod slot;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use self::core::{Core, Signals, half, set_half};
pub use block::Block;
pub use console::Ports;
pub use disk::{Access, Disk, DiskError, FileDisk, MemoryDisk, SECTOR, Version};
pub use entropy::Entropy;
pub use model::{Io, Model};
pub use net::Net;
pub use queue::{Broken, Buffer, Chain, Queue};
pub use service::{Chance, Fate, Faults, Interrupt, Service, Station, Statistics};
pub use slot::Slot;

/// Device in a slot.
#[derive(Debug, Serialize, Deserialize)]
pub enum VirtioDevice {
    /// A block device.
    Block(Box<Block>),
    /// A network device.
    Net(Box<Net>),
    /// A console with several ports.
    Console(Box<Ports>),
    /// An entropy device.
    Entropy(Box<Entropy>),
}

impl VirtioDevice {
    /// Interface that all types share.
    pub fn model(&self) -> &dyn Model {
        match self {
            Self::Block(block) => &**block,
            Self::Net(net) => &**net,
            Self::Console(ports) => &**ports,
            Self::Entropy(entropy) => &**entropy,
        }
    }

    /// Name of the type.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Block(_) => "block",
            Self::Net(_) => "network",
            Self::Console(_) => "console",
            Self::Entropy(_) => "entropy",
        }
    }

    /// As [`VirtioDevice::model`], to change it.
    pub fn model_mut(&mut self) -> &mut dyn Model {
        match self {
            Self::Block(block) => &mut **block,
            Self::Net(net) => &mut **net,
            Self::Console(ports) => &mut **ports,
            Self::Entropy(entropy) => &mut **entropy,
        }
    }
}

impl fmt::Display for VirtioDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
