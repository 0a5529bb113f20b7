//! Registers (chapter "Memory-mapped register interface").

use riscv::iommu::{
    CAPABILITIES, CQB, CQCSR, CQH, CQT, DDTP, FCTL, FCTL_WSI, FQB, FQCSR, FQH, FQT, ICVEC, IPSR,
    MSI_ENTRY_BYTES, MSI_TABLE, REGISTER_BYTES, ddtp, queue,
};
use serde::{Deserialize, Serialize};

use super::faults::Source;
use super::{AccessFault, Cycles, Iommu, Memory, VECTORS, bits};

/// PPN of `ddtp` and of the bases of queues.
const PPN: u64 = ((1 << 44) - 1) << 10;
/// Number of entries of a queue: the logarithm less 1.
const SIZE: u64 = 0x1f;
/// Bits of `icvec` that say the vectors of commands and faults; there are no others to be sent.
const VECTOR_FIELDS: u64 = (VECTORS as u64 - 1) | (VECTORS as u64 - 1) << 4;
/// Bits of an address of a message.
const MESSAGE_ADDRESS: u64 = ((1 << 56) - 1) & !3;

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

    fn set_base(&mut self, value: u64) -> bool {
        let is_on = self.has(queue::ON);
        if !is_on {
            self.base = value & (PPN | SIZE);
        }
        !is_on
    }

    /// Switches the queue on or off, clears the `errors` that are written as ones; true if it was switched on.
    fn set_control(&mut self, value: u32, errors: u32) -> bool {
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

    pub const fn has_wires(&self) -> bool {
        self.control & FCTL_WSI != 0
    }

    pub fn wires(&self) -> [bool; VECTORS] {
        let mut wires = [false; VECTORS];
        for source in Source::ALL {
            let is_pending = self.has_wires() && self.pending & source.bit() != 0;
            if let Some(wire) = wires.get_mut(self.vector(source)) {
                *wire |= is_pending;
            }
        }
        wires
    }

    /// The doubleword at `offset`, a multiple of 8.
    fn read(&self, offset: u64) -> u64 {
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
    const fn is_whole(offset: u64) -> bool {
        match offset {
            FCTL | CQH | FQH | CQCSR | IPSR_PAIR => false,
            MSI_TABLE.. => offset.is_multiple_of(MSI_ENTRY_BYTES),
            _ => true,
        }
    }
}

/// Offset of the doubleword with `ipsr` in its upper half.
const IPSR_PAIR: u64 = IPSR - 4;

const fn index(offset: u64) -> usize {
    ((offset - MSI_TABLE) / MSI_ENTRY_BYTES) as usize
}

impl Iommu {
    /// Reads `size` bytes at `offset`.
    ///
    /// # Errors
    /// [`AccessFault`] unless it is an aligned word or doubleword.
    pub fn read_register(
        &mut self,
        offset: u64,
        size: u8,
        now: Cycles,
        memory: &mut dyn Memory,
    ) -> Result<u64, AccessFault> {
        check(offset, size)?;
        self.run_commands(now, memory);
        let whole = self.registers.read(offset & !7);
        let value = whole >> (8 * (offset & 7));
        Ok(if size == 8 {
            value
        } else {
            value & 0xffff_ffff
        })
    }

    /// Writes `size` bytes at `offset`.
    ///
    /// # Errors
    /// [`AccessFault`] unless it is an aligned word or doubleword.
    pub fn write_register(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        now: Cycles,
        memory: &mut dyn Memory,
    ) -> Result<(), AccessFault> {
        check(offset, size)?;
        self.run_commands(now, memory);
        let whole = offset & !7;
        if size == 8 && !Registers::is_whole(whole) {
            // The upper half first, as the specification allows.
            self.write_word(offset + 4, (value >> 32) as u32, now, memory);
            self.write_word(offset, value as u32, now, memory);
        } else if size == 8 {
            self.write_whole(whole, value);
        } else if Registers::is_whole(whole) {
            let shift = 8 * (offset & 7);
            let kept = self.registers.read(whole) & !(0xffff_ffff << shift);
            self.write_whole(whole, kept | (value & 0xffff_ffff) << shift);
        } else {
            self.write_word(offset, value as u32, now, memory);
        }
        self.run_commands(now, memory);
        Ok(())
    }

    fn write_whole(&mut self, offset: u64, value: u64) {
        let registers = &mut self.registers;
        match offset {
            DDTP => {
                let (mode, old) = (value & ddtp::MODE, registers.ddtp & ddtp::MODE);
                let is_mode = mode < ddtp::ONE_LEVEL + 3;
                // A directory is only switched on where there is none.
                if is_mode && (old < ddtp::ONE_LEVEL || mode < ddtp::ONE_LEVEL) {
                    registers.ddtp = value & PPN | mode;
                }
            }
            CQB if registers.commands.set_base(value) => registers.commands.tail = 0,
            FQB if registers.faults.set_base(value) => registers.faults.head = 0,
            ICVEC => registers.causes = value & VECTOR_FIELDS,
            MSI_TABLE.. => {
                if let Some(vector) = registers.vectors.get_mut(index(offset)) {
                    vector.address = value & MESSAGE_ADDRESS;
                }
            }
            _ => {}
        }
    }

    fn write_word(&mut self, offset: u64, value: u32, now: Cycles, memory: &mut dyn Memory) {
        let registers = &mut self.registers;
        match offset {
            FCTL => {
                let is_idle = registers.ddtp & ddtp::MODE == ddtp::OFF
                    || registers.ddtp & ddtp::MODE == ddtp::BARE;
                let queues = registers.commands.control | registers.faults.control;
                if is_idle && queues & (queue::ENABLE | queue::ON) == 0 {
                    registers.control = value & FCTL_WSI;
                }
            }
            CQT => {
                registers.commands.tail = value & registers.commands.mask();
                self.schedule(now);
            }
            FQH => registers.faults.head = value & registers.faults.mask(),
            CQCSR => {
                let errors = queue::FAULTS | queue::FENCE_INTERRUPT;
                if registers.commands.set_control(value, errors) {
                    registers.commands.head = 0;
                }
                self.schedule(now);
            }
            FQCSR => {
                let errors = queue::MEMORY_FAULT | queue::OVERFLOW;
                if registers.faults.set_control(value, errors) {
                    registers.faults.tail = 0;
                }
            }
            IPSR => self.acknowledge(value, memory),
            MSI_TABLE.. => self.write_vector(offset, value, memory),
            // CQH and FQT are the IOMMU's, and nothing else is there.
            CQH | FQT => {}
            _ => {}
        }
    }

    fn write_vector(&mut self, offset: u64, value: u32, memory: &mut dyn Memory) {
        let number = index(offset);
        let Some(vector) = self.registers.vectors.get_mut(number) else {
            return;
        };
        if offset % MSI_ENTRY_BYTES == 8 {
            vector.data = value;
            return;
        }
        vector.control = value & 1;
        if vector.control == 0 && core::mem::take(&mut vector.pending) {
            self.send(number, memory);
        }
    }
}

const fn check(offset: u64, size: u8) -> Result<(), AccessFault> {
    let is_register = (size == 4 || size == 8)
        && offset.is_multiple_of(size as u64)
        && offset + size as u64 <= REGISTER_BYTES;
    match is_register {
        true => Ok(()),
        false => Err(AccessFault),
    }
}
