//! MSI-X of a function (PCI Local Bus Specification 3.0, 6.8.2).

use riscv::pci::{capability, msix};
use serde::{Deserialize, Serialize};

use super::configuration::Configuration;
use crate::device::Msi;

/// Offset of the pending bits behind the base address register that has the table.
const PENDING: u64 = 0x800;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Vector {
    address: u64,
    data: u32,
    control: u32,
}

/// Table of vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Msix {
    /// Where message control stands in configuration space.
    control: usize,
    vectors: Vec<Vector>,
    pending: u64,
}

impl Msix {
    /// Adds `vectors`, at most 64, to a function, with the table behind a base address register of 4 KiB of its own.
    pub fn new(configuration: &mut Configuration, bar: u8, vectors: usize) -> Self {
        configuration.add_registers(bar.into(), 4096, false);
        let mut body = [0; 10];
        body[..2].copy_from_slice(&(vectors as u16 - 1).to_le_bytes());
        body[2..6].copy_from_slice(&u32::from(bar).to_le_bytes());
        body[6..].copy_from_slice(&(PENDING as u32 | u32::from(bar)).to_le_bytes());
        let at = configuration.add_capability(capability::MSIX, &body);
        let bits = msix::ENABLE | msix::FUNCTION_MASK;
        configuration.allow(at + 2, &bits.to_le_bytes());
        let masked = Vector {
            control: msix::MASKED,
            ..Vector::default()
        };
        Self {
            control: at + 2,
            vectors: vec![masked; vectors],
            pending: 0,
        }
    }

    /// Number of vectors.
    pub fn vectors(&self) -> usize {
        self.vectors.len()
    }

    pub fn is_enabled(&self, configuration: &Configuration) -> bool {
        self.has(msix::ENABLE, configuration)
    }

    fn has(&self, bit: u16, configuration: &Configuration) -> bool {
        configuration.read(self.control, 2) as u16 & bit != 0
    }

    /// Notes that a vector is to be sent.
    pub fn raise(&mut self, vector: u16) {
        if usize::from(vector) < self.vectors.len() {
            self.pending |= 1 << vector;
        }
    }

    /// Takes the messages that may be sent.
    pub fn take(&mut self, configuration: &Configuration) -> Vec<Msi> {
        let enabled = self.is_enabled(configuration);
        if self.pending == 0 || !enabled || self.has(msix::FUNCTION_MASK, configuration) {
            return Vec::new();
        }
        let mut messages = Vec::new();
        for (number, vector) in self.vectors.iter().enumerate() {
            let is_sent = self.pending >> number & 1 != 0 && vector.control & msix::MASKED == 0;
            if is_sent {
                self.pending &= !(1 << number);
                messages.push(Msi {
                    address: vector.address,
                    data: vector.data,
                });
            }
        }
        messages
    }

    /// Forgets what is pending.
    pub fn clear(&mut self) {
        self.pending = 0;
    }

    /// Reads a word of the table or of the pending bits.
    pub fn read(&self, offset: u64) -> u32 {
        if offset >= PENDING {
            return match offset - PENDING {
                0 => self.pending as u32,
                4 => (self.pending >> 32) as u32,
                _ => 0,
            };
        }
        let vector = self.vectors.get((offset / msix::ENTRY_BYTES) as usize);
        vector.map_or(0, |vector| match offset % msix::ENTRY_BYTES {
            0 => vector.address as u32,
            4 => (vector.address >> 32) as u32,
            msix::DATA => vector.data,
            _ => vector.control,
        })
    }

    /// Writes a word of the table.
    pub fn write(&mut self, offset: u64, value: u32) {
        let vector = self.vectors.get_mut((offset / msix::ENTRY_BYTES) as usize);
        let Some(vector) = vector.filter(|_| offset < PENDING) else {
            return;
        };
        match offset % msix::ENTRY_BYTES {
            0 => vector.address = vector.address & !0xffff_ffff | u64::from(value & !3),
            4 => vector.address = vector.address & 0xffff_ffff | u64::from(value) << 32,
            msix::DATA => vector.data = value,
            _ => vector.control = value & msix::MASKED,
        }
    }
}
