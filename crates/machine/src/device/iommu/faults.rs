//! The fault queue, and the IOMMU's own interrupts (sections "Fault/Event-Queue" and "Interrupt pending status register").

use riscv::iommu::{cause, fault, queue};

use super::access::{Access, Refusal, Request, store};
use super::registers::Source;
use super::state::Iommu;
use crate::device::Memory;

impl Iommu {
    /// Puts a refused access of a device into the fault queue.
    pub(super) fn report(&mut self, request: &Request, refusal: Refusal, memory: &mut dyn Memory) {
        let kind = match request.access {
            Access::Execute => 1,
            Access::Read => 2,
            Access::Write => 3,
        };
        let process = request.process.map_or(0, |process| {
            let privileged = match process.privileged {
                true => fault::PRIVILEGED,
                false => 0,
            };
            u64::from(process.id) << fault::PROCESS_SHIFT | fault::HAS_PROCESS | privileged
        });
        let first = u64::from(refusal.cause)
            | process
            | kind << fault::TYPE_SHIFT
            | u64::from(request.device) << fault::DEVICE_SHIFT;
        self.record([first, 0, request.address, refusal.value], memory);
    }

    fn record(&mut self, words: [u64; 4], memory: &mut dyn Memory) {
        let registers = &mut self.registers.faults;
        if !registers.has(queue::ON) || registers.has(queue::MEMORY_FAULT | queue::OVERFLOW) {
            return;
        }
        let next = registers.tail.wrapping_add(1) & registers.mask();
        if next == registers.head {
            registers.control |= queue::OVERFLOW;
        } else {
            let at = registers.address(registers.tail, fault::BYTES);
            let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
            match store(at, &bytes, memory) {
                Ok(()) => registers.tail = next,
                Err(_) => registers.control |= queue::MEMORY_FAULT,
            }
        }
        self.interrupt(Source::Faults, memory);
    }

    /// Raises an interrupt, unless it is pending or not wanted.
    pub(super) fn interrupt(&mut self, source: Source, memory: &mut dyn Memory) {
        let registers = &mut self.registers;
        let own = match source {
            Source::Commands => &registers.commands,
            Source::Faults => &registers.faults,
        };
        if registers.pending & source.bit() != 0 || !own.has(queue::INTERRUPT_ENABLE) {
            return;
        }
        registers.pending |= source.bit();
        if registers.has_lines() {
            return;
        }
        let number = registers.vector(source);
        match registers.vectors.get_mut(number) {
            Some(vector) if vector.control & 1 != 0 => vector.pending = true,
            _ => self.send(number, memory),
        }
    }

    /// Sends the message of a vector.
    pub(super) fn send(&mut self, number: usize, memory: &mut dyn Memory) {
        let Some(vector) = self.registers.vectors.get(number).copied() else {
            return;
        };
        if store(vector.address, &vector.data.to_le_bytes(), memory).is_err() {
            let first = u64::from(cause::OWN_MESSAGE);
            self.record([first, 0, vector.address, 0], memory);
        }
    }

    /// Software writes ones to `ipsr`. What still asks for an interrupt becomes pending again.
    pub(super) fn acknowledge(&mut self, written: u32, memory: &mut dyn Memory) {
        for source in Source::ALL {
            if written & source.bit() == 0 {
                continue;
            }
            self.registers.pending &= !source.bit();
            let (own, errors) = match source {
                Source::Commands => (
                    &self.registers.commands,
                    queue::FAULTS | queue::FENCE_INTERRUPT,
                ),
                Source::Faults => (
                    &self.registers.faults,
                    queue::MEMORY_FAULT | queue::OVERFLOW,
                ),
            };
            if own.has(errors) {
                self.interrupt(source, memory);
            }
        }
    }
}
