//! The IOMMU's state.

use riscv::iommu::{capabilities, ddtp};
use serde::{Deserialize, Serialize};

use super::access::{ADDRESS_BITS, load};
use super::cache::Caches;
use super::registers::{Registers, VECTORS};
use crate::base::Paging;
use crate::board::IommuConfig;
use crate::device::{AccessFault, Cycles, Memory};

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
        | (capabilities::PD8 * 7)
}

/// Costs of translations, in cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IommuCosts {
    /// A translation that is kept.
    pub hit: u64,
    /// A reference to memory that a walk makes.
    pub step: u64,
    /// A command.
    pub command: u64,
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
    pub(super) registers: Registers,
    pub(super) caches: Caches,
    pub(super) costs: IommuCosts,
    /// Cycles that translations have taken since they were last asked for.
    pub(super) spent: u64,
    /// When the next command is carried out, if one waits.
    pub(super) next_command: Option<Cycles>,
    pub(super) statistics: IommuStatistics,
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

    /// Levels of the irq lines, vector by vector.
    #[must_use]
    pub fn lines(&self) -> [bool; VECTORS] {
        self.registers.lines()
    }

    /// When a command is to be carried out.
    #[must_use]
    pub const fn next_event(&self) -> Option<Cycles> {
        self.next_command
    }

    /// Counts `references` to memory.
    pub(super) const fn step(&mut self, references: u64) {
        self.statistics.steps += references;
        self.spent += references * self.costs.step;
    }

    /// Reads a doubleword of a table.
    pub(super) fn load(
        &mut self,
        address: u64,
        memory: &mut dyn Memory,
    ) -> Result<u64, AccessFault> {
        self.step(1);
        load(address, memory)
    }
}
