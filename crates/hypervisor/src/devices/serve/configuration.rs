//! Configuration space of the device's bus: one function with three regions, which stay where they are, and a wired interrupt (PCI Express Base
//! Specification, "PCI Compatible Configuration Registers"). No access goes further than to this copy.

use abi::serve::{CLASS, DEVICE, VENDOR};
use riscv::pci::header;

use super::place::Places;
use crate::devices::trapped::Access;
use crate::memory::address::{GuestRegion, PAGE_SIZE};

/// Offsets of registers.
const IDS: u64 = header::VENDOR as u64;
const COMMAND: u64 = header::COMMAND as u64;
const CLASS_AND_REVISION: u64 = header::REVISION as u64;
const REGIONS: u64 = header::BASE_ADDRESS as u64;
const SUBSYSTEM: u64 = header::SUBSYSTEM as u64;
const INTERRUPT: u64 = header::INTERRUPT_LINE as u64;

/// Bits of the command that can be set: memory, bus mastering, and no wired interrupts.
const COMMANDS: u32 = MEMORY | MASTER | NO_INTERRUPTS;
const MEMORY: u32 = 1 << 1;
const MASTER: u32 = 1 << 2;
const NO_INTERRUPTS: u32 = 1 << 10;
/// Status: an interrupt is pending.
const PENDING: u32 = 1 << (16 + 3);
/// Interrupt pin A.
const PIN: u32 = 1 << 8;
/// The register of the interrupt's line, which software keeps for itself.
const LINE: u32 = 0xff;

/// Number of regions.
const COUNT: usize = 3;

/// The function's registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    regions: [GuestRegion; COUNT],
    /// Regions whose sizes are being read.
    sized: [bool; COUNT],
    command: u32,
    line: u32,
}

impl Configuration {
    /// State after power-on.
    #[must_use]
    pub const fn new(places: Places) -> Self {
        Self {
            regions: [places.registers, places.rings, places.window],
            sized: [false; COUNT],
            command: MEMORY,
            line: 0,
        }
    }

    /// Returns to the state after power-on.
    pub fn reset(&mut self) {
        (self.sized, self.command, self.line) = ([false; COUNT], MEMORY, 0);
    }

    /// Returns true if the device may interrupt by its wire.
    #[must_use]
    pub const fn interrupts(&self) -> bool {
        self.command & NO_INTERRUPTS == 0
    }

    /// Value of a load. Functions that are not there read as ones, and so do accesses that are not aligned.
    #[must_use]
    pub fn load(&self, access: Access, is_pending: bool) -> u64 {
        let Some(shift) = shift(access) else {
            return u64::MAX;
        };
        let word = self.word(access.offset & !3, is_pending);
        u64::from(word) >> shift
    }

    fn word(&self, offset: u64, is_pending: bool) -> u32 {
        let ids = u32::from(DEVICE) << 16 | u32::from(VENDOR);
        match offset {
            IDS | SUBSYSTEM => ids,
            COMMAND if is_pending => self.command | PENDING,
            COMMAND => self.command,
            CLASS_AND_REVISION => CLASS << 8,
            INTERRUPT => PIN | self.line,
            _ => self.region(offset).map_or(0, |index| {
                let region = self.regions.get(index).copied().unwrap_or_default();
                match self.sized.get(index) {
                    Some(true) => (region.size() as u32).wrapping_neg(),
                    _ => region.base().raw() as u32,
                }
            }),
        }
    }

    /// Index of the region whose register is at this offset.
    fn region(&self, offset: u64) -> Option<usize> {
        let index = (offset.checked_sub(REGIONS)? / 4) as usize;
        (index < COUNT).then_some(index)
    }

    /// Takes a store.
    pub fn store(&mut self, access: Access, value: u64) {
        let Some(shift) = shift(access) else {
            return;
        };
        let mask = (u32::MAX >> (32 - 8 * access.width.bytes())) << shift;
        let value = (value as u32) << shift;
        let merged = |old: u32| old & !mask | value & mask;
        match access.offset & !3 {
            COMMAND => self.command = merged(self.command) & COMMANDS,
            INTERRUPT => self.line = merged(self.line) & LINE,
            offset => {
                let index = self.region(offset);
                if let Some(sized) = index.and_then(|index| self.sized.get_mut(index)) {
                    *sized = value & mask == u32::MAX;
                }
            }
        }
    }
}

/// Bits below an access in its word, if it is one that the function answers.
fn shift(access: Access) -> Option<u64> {
    let bytes = access.width.bytes();
    let answers = bytes <= 4 && access.offset.is_multiple_of(bytes) && access.offset < PAGE_SIZE;
    answers.then_some(8 * (access.offset & 3))
}
