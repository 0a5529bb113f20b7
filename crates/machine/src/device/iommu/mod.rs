//! An IOMMU (RISC-V IOMMU Architecture Specification 1.0): translates the addresses of accesses that devices make, and refuses those that
//! their contexts do not allow.
//!
//! What it keeps of device contexts, process contexts and page tables stays kept until software invalidates it, or until its place is
//! needed: software that leaves an invalidation out is found out. Neither ATS nor page requests, performance counters, big-endian or
//! 32-bit tables are there.

mod cache;
mod commands;
mod context;
mod faults;
mod messages;
mod process;
mod registers;
mod stage;
#[cfg(test)]
mod tests;
mod translate;

use riscv::iommu::{capabilities, ddtp};
use serde::{Deserialize, Serialize};

use super::{AccessFault, Cycles, Memory};
use crate::base::Paging;
pub use crate::board::IommuConfig;
use cache::Caches;
use registers::Registers;

/// Value of `capabilities`.
#[must_use]
pub const fn capabilities(config: &IommuConfig, paging: Paging) -> u64 {
    let modes: u64 = match paging {
        Paging::Sv39 => 1,
        Paging::Sv48 => 3,
        Paging::Sv57 => 7,
    };
    let messages = match config.message_tables {
        true => capabilities::MSI_FLAT | capabilities::MSI_MRIF | capabilities::AMO_MRIF,
        false => 0,
    };
    capabilities::VERSION
        | modes << (8 + capabilities::MODE_SHIFT)
        | modes << (8 + capabilities::GUEST_MODE_SHIFT)
        | capabilities::SVPBMT
        | messages
        | capabilities::AMO_HWAD
        | capabilities::IGS_BOTH
        | (ADDRESS_BITS as u64) << capabilities::PAS_SHIFT
        | capabilities::PD8 * 7
}

/// Bits of physical addresses.
const ADDRESS_BITS: u32 = 56;
/// Vectors of interrupts, each with a wire and an entry of the MSI table.
pub const VECTORS: usize = 4;

/// What translations cost, in cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IommuCosts {
    /// A translation that is kept.
    pub hit: u64,
    /// A reference to memory that a walk makes.
    pub step: u64,
    /// A command.
    pub command: u64,
}

/// Kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A fetch of instructions.
    Execute,
    /// A read.
    Read,
    /// A write, or an atomic operation.
    Write,
}

/// Process that an access is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// `process_id`.
    pub id: u32,
    /// True for supervisor privilege.
    pub privileged: bool,
}

/// Access of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// `device_id`.
    pub device: u32,
    /// Process, if the device names one.
    pub process: Option<Process>,
    /// Kind.
    pub access: Access,
    /// Address that the device uses.
    pub address: u64,
}

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// To a physical address.
    Physical(u64),
    /// To an interrupt file in memory: its address, and address and data of the notice.
    File {
        /// Address of the file.
        file: u64,
        /// Address of the notice.
        notice: u64,
        /// Interrupt identity of the notice.
        identity: u32,
    },
}

/// A translated access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// Where it goes.
    pub place: Place,
    /// Bytes of the page for which the translation holds.
    pub bytes: u64,
}

/// Counts of an IOMMU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IommuStatistics {
    /// Accesses that were translated, or refused.
    pub requests: u64,
    /// Of these, those whose translation was not kept.
    pub misses: u64,
    /// References to memory of contexts and tables.
    pub steps: u64,
    /// Accesses that were refused.
    pub faults: u64,
    /// Commands.
    pub commands: u64,
}

/// An IOMMU.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Iommu {
    registers: Registers,
    caches: Caches,
    costs: IommuCosts,
    /// Cycles that translations have taken since they were last asked for.
    spent: u64,
    /// When the next command is carried out, if one waits.
    next_command: Option<Cycles>,
    statistics: IommuStatistics,
}

impl Iommu {
    /// An IOMMU after reset: as on QEMU's board, addresses are physical ones until software says otherwise.
    #[must_use]
    pub fn new(config: &IommuConfig, paging: Paging) -> Self {
        let capabilities = capabilities(config, paging);
        let mut new = Self::with(capabilities, config.contexts.into(), config.entries.into());
        new.registers.ddtp = ddtp::BARE;
        new
    }

    /// An IOMMU that is off, with any capabilities of those that there are, and numbers of contexts and translations that it keeps.
    #[must_use]
    pub fn with(capabilities: u64, contexts: usize, entries: usize) -> Self {
        Self {
            registers: Registers::new(capabilities),
            caches: Caches::new(contexts, entries),
            costs: IommuCosts::default(),
            spent: 0,
            next_command: None,
            statistics: IommuStatistics::default(),
        }
    }

    /// Sets what things cost from now on.
    pub const fn set_costs(&mut self, costs: IommuCosts) {
        self.costs = costs;
    }

    /// Counts since reset.
    #[must_use]
    pub const fn statistics(&self) -> IommuStatistics {
        self.statistics
    }

    /// Takes the time that translations have taken since the last call.
    pub fn take_time(&mut self) -> Cycles {
        Cycles(core::mem::take(&mut self.spent))
    }

    /// Levels of the wires, vector by vector.
    #[must_use]
    pub fn wires(&self) -> [bool; VECTORS] {
        self.registers.wires()
    }

    /// When a command is to be carried out.
    #[must_use]
    pub const fn next_event(&self) -> Option<Cycles> {
        self.next_command
    }

    /// Counts `references` to memory.
    const fn step(&mut self, references: u64) {
        self.statistics.steps += references;
        self.spent += references * self.costs.step;
    }

    /// Reads a doubleword of a table.
    fn load(&mut self, address: u64, memory: &mut dyn Memory) -> Result<u64, AccessFault> {
        self.step(1);
        load(address, memory)
    }
}

fn load(address: u64, memory: &mut dyn Memory) -> Result<u64, AccessFault> {
    if address >> ADDRESS_BITS != 0 {
        return Err(AccessFault);
    }
    let mut bytes = [0; 8];
    memory.load(address, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn store(address: u64, bytes: &[u8], memory: &mut dyn Memory) -> Result<(), AccessFault> {
    if address >> ADDRESS_BITS != 0 {
        return Err(AccessFault);
    }
    memory.store(address, bytes)
}

/// Bits `first` to `last`.
const fn bits(value: u64, last: u32, first: u32) -> u64 {
    (value >> first) & (u64::MAX >> (63 - (last - first)))
}
