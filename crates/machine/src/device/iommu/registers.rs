//! Registers (chapter "Memory-mapped register interface").

use riscv::iommu::{
    CAPABILITIES, CQB, CQCSR, CQH, DDTP, FCTL, FCTL_WSI, FQB, FQH, ICVEC, IPSR, MSI_ENTRY_BYTES,
    MSI_TABLE, queue,
};
use serde::{Deserialize, Serialize};

use super::access::bits;

/// Vectors of interrupts, each with a line and an entry of the MSI table.
pub const VECTORS: usize = 4;

/// PPN of `ddtp` and of the bases of queues.
pub const PPN: u64 = ((1 << 44) - 1) << 10;
/// Number of entries of a queue: the logarithm less 1.
const SIZE: u64 = 0x1f;

/// A queue in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRegisters {
    /// `cqb` or `fqb`.
    pub base: u64,
    /// `cqh` or `fqh`.
    pub head: u32,
    /// `cqt` or `fqt`.
    pub tail: u32,
    /// `cqcsr` or `fqcsr`.
    pub control: u32,
}

impl QueueRegisters {
    /// Bits of an index.
    pub const fn mask(&self) -> u32 {
        ((2_u64 << (self.base & SIZE)) - 1) as u32
    }

    /// Address of an entry with so many bytes.
    pub const fn address(&self, index: u32, bytes: u64) -> u64 {
        (bits(self.base, 53, 10) << 12) + index as u64 * bytes
    }

    pub const fn has(&self, bit: u32) -> bool {
        self.control & bit != 0
    }

    /// Sets the base unless the queue is on; true if it was set.
    pub fn set_base(&mut self, value: u64) -> bool {
        let is_on = self.has(queue::ON);
        if !is_on {
            self.base = value & (PPN | SIZE);
        }
        !is_on
    }

    /// Switches the queue on or off, clears the `errors` that are written as ones; true if it was switched on.
    pub fn set_control(&mut self, value: u32, errors: u32) -> bool {
        let began = value & queue::ENABLE != 0 && !self.has(queue::ENABLE);
        let on = match value & queue::ENABLE {
            0 => 0,
            _ => queue::ENABLE | queue::ON,
        };
        let left = match began {
            true => 0,
            false => self.control & errors & !value,
        };
        self.control = on | left | value & queue::INTERRUPT_ENABLE;
        began
    }
}

/// An entry of the table of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// `msi_addr`.
    pub address: u64,
    /// `msi_data`.
    pub data: u32,
    /// `msi_vec_ctl`.
    pub control: u32,
    /// True if a message waits until the vector is no longer masked.
    pub pending: bool,
}

/// The registers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    pub capabilities: u64,
    pub control: u32,
    pub ddtp: u64,
    pub commands: QueueRegisters,
    pub faults: QueueRegisters,
    /// `ipsr`.
    pub pending: u32,
    /// `icvec`.
    pub causes: u64,
    pub vectors: [Vector; VECTORS],
}

impl Registers {
    pub fn new(capabilities: u64) -> Self {
        Self {
            capabilities,
            ..Self::default()
        }
    }

    /// The vector of a source of interrupts.
    pub const fn vector(&self, source: Source) -> usize {
        (self.causes >> source.vector_shift()) as usize & (VECTORS - 1)
    }

    pub const fn has_lines(&self) -> bool {
        self.control & FCTL_WSI != 0
    }

    pub fn lines(&self) -> [bool; VECTORS] {
        let mut lines = [false; VECTORS];
        for source in Source::ALL {
            let is_pending = self.has_lines() && self.pending & source.bit() != 0;
            if let Some(line) = lines.get_mut(self.vector(source)) {
                *line |= is_pending;
            }
        }
        lines
    }

    /// The doubleword at `offset`, a multiple of 8.
    pub fn read(&self, offset: u64) -> u64 {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (commands, faults) = (&self.commands, &self.faults);
        match offset {
            CAPABILITIES => self.capabilities,
            FCTL => self.control.into(),
            DDTP => self.ddtp,
            CQB => commands.base,
            CQH => pair(commands.head, commands.tail),
            FQB => faults.base,
            FQH => pair(faults.head, faults.tail),
            CQCSR => pair(commands.control, faults.control),
            IPSR_PAIR => pair(0, self.pending),
            ICVEC => self.causes,
            MSI_TABLE.. => match self.vectors.get(index(offset)) {
                Some(vector) if offset.is_multiple_of(MSI_ENTRY_BYTES) => vector.address,
                Some(vector) => pair(vector.data, vector.control),
                None => 0,
            },
            _ => 0,
        }
    }

    /// Tests whether the doubleword at `offset` is one register.
    pub const fn is_whole(offset: u64) -> bool {
        match offset {
            FCTL | CQH | FQH | CQCSR | IPSR_PAIR => false,
            MSI_TABLE.. => offset.is_multiple_of(MSI_ENTRY_BYTES),
            _ => true,
        }
    }
}

/// Offset of the doubleword with `ipsr` in its upper half.
const IPSR_PAIR: u64 = IPSR - 4;

/// Number of the entry of the table of messages at an offset.
pub const fn index(offset: u64) -> usize {
    ((offset - MSI_TABLE) / MSI_ENTRY_BYTES) as usize
}

/// A source of interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The command queue.
    Commands,
    /// The fault queue.
    Faults,
}

impl Source {
    /// All that there are.
    pub const ALL: [Self; 2] = [Self::Commands, Self::Faults];

    /// Its bit of `ipsr`.
    pub const fn bit(self) -> u32 {
        match self {
            Self::Commands => 1 << 0,
            Self::Faults => 1 << 1,
        }
    }

    /// Place of its vector in `icvec`.
    pub const fn vector_shift(self) -> u32 {
        match self {
            Self::Commands => 0,
            Self::Faults => 4,
        }
    }
}
