//! Virtio devices by which several VMs share one of the board's: each VM has a device of its own, and the hypervisor drives the board's.
//!
//! [`front`] is what a guest sees of any of them: registers and queues (virtio 1.2, §4.2.2 and §2.7). A [`Kind`](front::Kind) is what a device
//! does with the chains of its queues.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod balloon;
pub mod disk;
pub mod driver;
pub mod front;
pub mod queue;
pub mod switch;

use crate::devices::wires::SourceNumber;
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;
use crate::memory::guest::TheHost;

/// What the hypervisor reaches where it drives a device of the board itself.
pub trait Board {
    /// What a register of a device shows. What the device wrote to memory before is seen by what is read there afterwards.
    fn load(&self, at: HostPhysical, width: Width) -> u64;

    /// Sets a register of a device, which sees what was written to memory before.
    fn store(&self, at: HostPhysical, width: Width, value: u64);

    /// A level-sensitive source of the board's was served: while its wire is high, it sends again.
    fn served(&self, source: SourceNumber);

    /// The board's memory.
    fn host(&self) -> TheHost<'_>;
}

/// A device of one VM that shares something with devices of others: a number below [`CLIENTS`], of its own in the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client(u8);

/// How many there can be.
pub const CLIENTS: usize = 64;

impl Client {
    /// The device with this number, if there can be one.
    #[must_use]
    pub const fn new(number: usize) -> Option<Self> {
        match number < CLIENTS {
            true => Some(Self(number as u8)),
            false => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// A set with it alone, a bit for each.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.0
    }

    /// The devices in a set.
    pub fn in_bits(bits: u64) -> impl Iterator<Item = Self> {
        (0..CLIENTS as u8)
            .map(Self)
            .filter(move |one| bits & one.bit() != 0)
    }
}
