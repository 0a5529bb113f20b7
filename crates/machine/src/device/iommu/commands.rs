//! The command queue (section "Command-Queue").

use riscv::iommu::{command, queue};

use super::access::{bits, load, store};
use super::registers::Source;
use super::state::Iommu;
use crate::device::{Cycles, Memory};

/// Commands that are carried out before a hart goes on, at most; the others follow.
const BUDGET: u32 = 4096;
/// PSCV of IOTINVAL.
const PSCV: u64 = 1 << 32;
/// Operands of IOTINVAL besides the opcode: AV, PSCID, PSCV, GV and GSCID.
const OPERANDS: u64 = command::AV | 0xf_ffff << 12 | PSCV | command::GV | 0xffff << 44;
/// Bits of IOTINVAL's second doubleword: the address.
const ADDRESS: u64 = ((1 << 52) - 1) << 10;
/// WSI of IOFENCE.C.
const FENCE_LINE: u64 = 1 << 11;
/// PR and PW of IOFENCE.C: all accesses are done already.
const FENCE_ORDER: u64 = 1 << 12 | 1 << 13;
/// DV of IODIR.
const DV: u64 = 1 << 33;
/// Opcode and function.
const FUNCTION: u64 = 0x3ff;
/// IOFENCE.C, without operands.
const IOFENCE: u64 = command::IOFENCE & FUNCTION;
/// IODIR.INVAL_PDT.
const IODIR_INVAL_PDT: u64 = command::IODIR_INVAL_DDT | 1 << 7;

/// Reason why a command is not carried out.
enum Stop {
    Illegal,
    Memory,
}

impl Iommu {
    fn has_command(&self) -> bool {
        let registers = &self.registers.commands;
        registers.has(queue::ON)
            && !registers.has(queue::FAULTS)
            && registers.head != registers.tail
    }

    /// Plans the next command, if one waits and none is planned.
    pub(super) fn schedule(&mut self, now: Cycles) {
        if self.next_command.is_none() && self.has_command() {
            self.next_command = Some(now.after(Cycles(self.costs.command)));
        }
    }

    /// Carries out the commands whose time has come.
    pub fn run_commands(&mut self, now: Cycles, memory: &mut dyn Memory) {
        for _ in 0..BUDGET {
            let Some(due) = self.next_command.filter(|due| *due <= now) else {
                return;
            };
            self.next_command = None;
            if !self.has_command() {
                return;
            }
            self.statistics.commands += 1;
            let registers = &self.registers.commands;
            let at = registers.address(registers.head, command::BYTES);
            let (low, high) = (load(at, memory), load(at + 8, memory));
            let done = match (low, high) {
                (Ok(low), Ok(high)) => self.carry_out([low, high], memory),
                _ => Err(Stop::Memory),
            };
            let registers = &mut self.registers.commands;
            let error = match done {
                Ok(()) => {
                    registers.head = registers.head.wrapping_add(1) & registers.mask();
                    self.schedule(due);
                    continue;
                }
                Err(Stop::Illegal) => queue::ILLEGAL,
                Err(Stop::Memory) => queue::MEMORY_FAULT,
            };
            registers.control |= error;
            self.interrupt(Source::Commands, memory);
        }
    }

    fn carry_out(&mut self, [low, high]: [u64; 2], memory: &mut dyn Memory) -> Result<(), Stop> {
        let operands = low & !FUNCTION;
        match low & FUNCTION {
            function @ (command::IOTINVAL_VMA | command::IOTINVAL_GVMA) => {
                let is_second = function == command::IOTINVAL_GVMA;
                let is_legal = operands & !OPERANDS == 0 && high & !ADDRESS == 0;
                if !is_legal || is_second && low & PSCV != 0 {
                    return Err(Stop::Illegal);
                }
                let when = |bit: u64, value: u64| (low & bit != 0).then_some(value);
                let address = when(command::AV, bits(high, 61, 10) << 12);
                let guest = when(command::GV, bits(low, 59, 44)).map(|guest| guest as u16);
                let process = when(PSCV, bits(low, 31, 12)).map(|process| process as u32);
                match is_second {
                    true => self
                        .caches
                        .drop_second(guest, address.filter(|_| guest.is_some())),
                    false => self.caches.drop_first(guest, process, address),
                }
                Ok(())
            }
            IOFENCE => self.fence(low, high, memory),
            command::IODIR_INVAL_DDT => {
                let device = bits(low, 63, 40) as u32;
                if operands & !(DV | 0xff_ffff << 40) != 0 || high != 0 {
                    return Err(Stop::Illegal);
                }
                self.caches.drop_contexts((low & DV != 0).then_some(device));
                Ok(())
            }
            IODIR_INVAL_PDT => {
                let is_legal = operands & !(DV | 0xff_ffff << 40 | 0xf_ffff << 12) == 0;
                if !is_legal || low & DV == 0 || high != 0 {
                    return Err(Stop::Illegal);
                }
                let (device, process) = (bits(low, 63, 40), bits(low, 31, 12));
                self.caches.drop_process(device as u32, process as u32);
                Ok(())
            }
            _ => Err(Stop::Illegal),
        }
    }

    /// IOFENCE.C. Accesses of devices are done when they are made, so nothing is waited for.
    fn fence(&mut self, low: u64, high: u64, memory: &mut dyn Memory) -> Result<(), Stop> {
        let data = 0xffff_ffff << 32;
        let known = command::AV | FENCE_LINE | FENCE_ORDER | data | FUNCTION;
        let has_lines = self.registers.has_lines();
        if low & !known != 0 || high >> 62 != 0 || low & FENCE_LINE != 0 && !has_lines {
            return Err(Stop::Illegal);
        }
        if low & command::AV != 0 {
            let data = (bits(low, 63, 32) as u32).to_le_bytes();
            store(high << 2, &data, memory).map_err(|_| Stop::Memory)?;
        }
        if low & FENCE_LINE != 0 && !self.registers.commands.has(queue::FENCE_INTERRUPT) {
            self.registers.commands.control |= queue::FENCE_INTERRUPT;
            self.interrupt(Source::Commands, memory);
        }
        Ok(())
    }
}
