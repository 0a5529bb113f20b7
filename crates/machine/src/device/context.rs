//! Inputs of a device from the machine, and its effects.

use serde::{Deserialize, Serialize};

use super::{AccessFault, Clock, Cycles, IrqLevels, Memory, PortId};

/// A message-signalled interrupt: a 32-bit store of `data` to `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Msi {
    /// Physical address of the interrupt file's page.
    pub address: u64,
    /// The interrupt identity.
    pub data: u32,
}

/// A new level on an APLIC source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineChange {
    /// The source number, 1..=1023.
    pub source: u32,
    /// The level that the device drives now.
    pub level: bool,
}

/// Request of the test finisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Power {
    /// Power off with success.
    Off,
    /// Power off with an exit code that the guest gave.
    Fail(u16),
    /// Reset the machine.
    Reset,
}

/// Effects of devices for others to act on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// The interrupt levels that end at the harts.
    pub irq_levels: IrqLevels,
    /// Messages on their way to interrupt files.
    pub msis: Vec<Msi>,
    /// Level changes on their way to the root APLIC domain.
    pub lines: Vec<LineChange>,
    /// Frames on their way to the network switch: port and bytes.
    pub frames: Vec<(PortId, Vec<u8>)>,
    /// The end of the run, once asked for.
    pub power: Option<Power>,
}

/// A device's view of the machine during one call.
#[allow(missing_debug_implementations)]
pub struct Context<'a> {
    /// Machine time of the access. Not monotonic between harts within one quantum.
    pub now: Cycles,
    /// How cycles relate to ticks and nanoseconds.
    pub clock: Clock,
    /// RAM.
    pub memory: &'a mut dyn Memory,
    /// Where to leave interrupts and frames.
    pub effects: &'a mut Effects,
}

impl Context<'_> {
    /// Drives the level of an APLIC source.
    pub fn set_line(&mut self, source: u32, level: bool) {
        self.effects.lines.push(LineChange { source, level });
    }

    /// Sends a message-signalled interrupt.
    pub fn send_msi(&mut self, msi: Msi) {
        self.effects.msis.push(msi);
    }
}

/// RAM as one vector: for loading images before a run, and for tests.
#[derive(Debug, Clone, Default)]
pub struct FlatMemory {
    base: u64,
    bytes: Vec<u8>,
}

impl FlatMemory {
    /// `size` zero bytes at physical address `base`.
    #[must_use]
    pub fn new(base: u64, size: usize) -> Self {
        Self {
            base,
            bytes: vec![0; size],
        }
    }

    /// The bytes, lowest address first.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn range(&self, address: u64, length: u64) -> Option<core::ops::Range<usize>> {
        let start = address.checked_sub(self.base)?;
        let end = start.checked_add(length)?;
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        (end <= self.bytes.len()).then_some(start..end)
    }
}

impl Memory for FlatMemory {
    fn load(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), AccessFault> {
        let range = self
            .range(address, buffer.len() as u64)
            .ok_or(AccessFault)?;
        buffer.copy_from_slice(self.bytes.get(range).ok_or(AccessFault)?);
        Ok(())
    }

    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        let range = self.range(address, bytes.len() as u64).ok_or(AccessFault)?;
        self.bytes
            .get_mut(range)
            .ok_or(AccessFault)?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn contains(&self, address: u64, length: u64) -> bool {
        self.range(address, length).is_some()
    }
}
