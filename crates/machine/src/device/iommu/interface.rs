//! Accesses of harts to the registers.

use riscv::iommu::{
    CQB, CQCSR, CQH, CQT, DDTP, FCTL, FCTL_WSI, FQB, FQCSR, FQH, FQT, ICVEC, IPSR, MSI_ENTRY_BYTES,
    MSI_TABLE, REGISTER_BYTES, ddtp, queue,
};

use super::registers::{PPN, Registers, VECTORS, index};
use super::state::Iommu;
use crate::device::{AccessFault, Cycles, Memory};

/// Bits of `icvec` that say the vectors of commands and faults; there are no others to be sent.
const VECTOR_FIELDS: u64 = (VECTORS as u64 - 1) | (VECTORS as u64 - 1) << 4;
/// Bits of an address of a message.
const MESSAGE_ADDRESS: u64 = ((1 << 56) - 1) & !3;

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
