//! Host bridge of PCI Express with one bus: configuration space (ECAM), windows for the registers of functions, lines, and messages. Its
//! layout is that of QEMU's `virt` board.
//!
//! Where no function answers, reads are all ones and writes are lost (PCI Express Base Specification, 2.3.2).

mod configuration;
mod dma;
mod function;
mod msix;
#[cfg(test)]
mod tests;

use riscv::pci::CONFIGURATION_BYTES;
use serde::{Deserialize, Serialize};

use super::iommu::{Iommu, IommuCosts, VECTORS};
use super::target::Target;
use super::{AccessFault, Context, Cycles, DevicesConfig, Memory, Msi};
use crate::board::map;
use configuration::{Configuration, Identity};
use dma::{Bus, Dma};
pub use function::Function;

/// QEMU's host bridge, whose names need no driver.
const BRIDGE: Identity = Identity {
    vendor: 0x1b36,
    device: 0x0008,
    class: 0x06_00_00 << 8,
    subsystem: 0x1100,
};
/// Devices on the bus besides the bridge.
pub const SLOTS: usize = 31;
/// Wires of the bridge.
const LINES: usize = map::PCI_LINES as usize;

/// The bridge and what is behind it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pci {
    bridge: Configuration,
    /// Devices from number 1 on, each with one function.
    functions: Vec<Function>,
    iommu: Option<Iommu>,
    /// Levels of the lines of functions, and of the IOMMU.
    lines: [bool; LINES],
    iommu_lines: [bool; VECTORS],
    /// Messages on their way to interrupt files.
    under_way: Vec<(Cycles, Msi)>,
}

/// Id of a function on bus 0.
const fn id(index: usize) -> u32 {
    (index as u32 + 1) << 3
}

impl Pci {
    /// The bridge of a board, if it has one.
    #[must_use]
    pub fn of(config: &DevicesConfig) -> Option<Box<Self>> {
        let bridge = config.pci?;
        Some(Box::new(Self {
            bridge: Configuration::new(&BRIDGE),
            functions: Vec::new(),
            iommu: bridge.iommu.map(|own| Iommu::new(&own, bridge.paging)),
            lines: [false; LINES],
            iommu_lines: [false; VECTORS],
            under_way: Vec::new(),
        }))
    }

    /// Puts a function on the bus, at the next number. There are [`SLOTS`] at most.
    pub fn insert(&mut self, function: Function) {
        self.functions.push(function);
    }

    /// The functions, from device number 1 on.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub fn functions_mut(&mut self) -> &mut [Function] {
        &mut self.functions
    }

    /// The IOMMU.
    #[must_use]
    pub const fn iommu(&self) -> Option<&Iommu> {
        self.iommu.as_ref()
    }

    /// Sets what translations cost.
    pub fn set_costs(&mut self, costs: IommuCosts) {
        if let Some(iommu) = &mut self.iommu {
            iommu.set_costs(costs);
        }
    }

    /// Reads what belongs to the bridge.
    ///
    /// # Errors
    /// [`AccessFault`] if the target does not, or does not take the access.
    pub(super) fn read_target(
        &mut self,
        target: &Target,
        size: u8,
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<u64, AccessFault> {
        match *target {
            Target::PciConfiguration(at) => self.read_configuration(at, size, context, config),
            Target::Pci(address) => self.read(address, size, context, config),
            Target::Iommu(offset) => self.read_iommu(offset, size, context, config),
            _ => Err(AccessFault),
        }
    }

    /// Writes what belongs to the bridge.
    ///
    /// # Errors
    /// As for [`Pci::read_target`].
    pub(super) fn write_target(
        &mut self,
        target: &Target,
        access: (u8, u64),
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<(), AccessFault> {
        match *target {
            Target::PciConfiguration(at) => self.write_configuration(at, access, context, config),
            Target::Pci(address) => self.write(address, access, context, config),
            Target::Iommu(offset) => self.write_iommu(offset, access, context, config),
            _ => Err(AccessFault),
        }
    }

    /// Reads configuration space.
    ///
    /// # Errors
    /// [`AccessFault`] unless the address is a multiple of the size.
    pub fn read_configuration(
        &mut self,
        offset: u64,
        size: u8,
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<u64, AccessFault> {
        self.read_pieces(
            offset,
            size,
            context,
            config,
            |pci, at, size, context, config| {
                let (function, at) = place(at);
                match function {
                    Some(0) => pci.bridge.read(at, size),
                    Some(number) => {
                        let read = |function: &mut Function, context: &mut Context<'_>| {
                            function.read_configuration(at, size, context)
                        };
                        pci.with(number - 1, context, config, read)
                            .unwrap_or(u32::MAX)
                    }
                    None => u32::MAX,
                }
            },
        )
    }

    /// Writes configuration space.
    ///
    /// # Errors
    /// As for [`Pci::read_configuration`].
    pub fn write_configuration(
        &mut self,
        offset: u64,
        (size, value): (u8, u64),
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<(), AccessFault> {
        self.write_pieces(
            offset,
            (size, value),
            context,
            config,
            |pci, at, (size, value), context, config| {
                let (function, at) = place(at);
                match function {
                    Some(0) => pci.bridge.write(at, size, value),
                    Some(number) => {
                        let write = |function: &mut Function, context: &mut Context<'_>| {
                            function.write_configuration(at, size, value, context);
                        };
                        pci.with(number - 1, context, config, write);
                    }
                    None => {}
                }
            },
        )
    }

    /// Reads registers of functions.
    ///
    /// # Errors
    /// As for [`Pci::read_configuration`].
    pub fn read(
        &mut self,
        address: u64,
        size: u8,
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<u64, AccessFault> {
        self.read_pieces(
            address,
            size,
            context,
            config,
            |pci, at, size, context, config| {
                let Some((index, bar, offset)) = pci.find(at) else {
                    return u32::MAX;
                };
                let read = |function: &mut Function, context: &mut Context<'_>| {
                    function.read(bar, offset, size, context)
                };
                pci.with(index, context, config, read).unwrap_or(u32::MAX)
            },
        )
    }

    /// Writes registers of functions.
    ///
    /// # Errors
    /// As for [`Pci::read_configuration`].
    pub fn write(
        &mut self,
        address: u64,
        (size, value): (u8, u64),
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<(), AccessFault> {
        self.write_pieces(
            address,
            (size, value),
            context,
            config,
            |pci, at, (size, value), context, config| {
                if let Some((index, bar, offset)) = pci.find(at) {
                    let write = |function: &mut Function, context: &mut Context<'_>| {
                        function.write(bar, offset, size, value, context);
                    };
                    pci.with(index, context, config, write);
                }
            },
        )
    }

    /// Makes an aligned read of at most 4 bytes, or two for a doubleword, as QEMU's board does.
    fn read_pieces(
        &mut self,
        at: u64,
        size: u8,
        context: &mut Context<'_>,
        config: &DevicesConfig,
        mut read: impl FnMut(&mut Self, u64, u8, &mut Context<'_>, &DevicesConfig) -> u32,
    ) -> Result<u64, AccessFault> {
        if !at.is_multiple_of(size.into()) {
            return Err(AccessFault);
        }
        let low = read(self, at, size.min(4), context, config);
        let high = match size {
            8 => read(self, at + 4, 4, context, config),
            _ => 0,
        };
        let low = match size {
            1 => low & 0xff,
            2 => low & 0xffff,
            _ => low,
        };
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    /// As [`Pci::read_pieces`].
    fn write_pieces(
        &mut self,
        at: u64,
        (size, value): (u8, u64),
        context: &mut Context<'_>,
        config: &DevicesConfig,
        mut write: impl FnMut(&mut Self, u64, (u8, u32), &mut Context<'_>, &DevicesConfig),
    ) -> Result<(), AccessFault> {
        if !at.is_multiple_of(size.into()) {
            return Err(AccessFault);
        }
        write(self, at, (size.min(4), value as u32), context, config);
        if size == 8 {
            let high = (value >> 32) as u32;
            write(self, at + 4, (4, high), context, config);
        }
        Ok(())
    }

    /// The function whose registers an address belongs to, with the base address register and the offset.
    fn find(&self, address: u64) -> Option<(usize, usize, u64)> {
        let mut functions = self.functions.iter().enumerate();
        functions.find_map(|(index, function)| {
            let (bar, offset) = function.find(address)?;
            Some((index, bar, offset))
        })
    }

    /// Lets a function do something, with memory as it reaches it, and carries its interrupts on.
    fn with<T>(
        &mut self,
        index: usize,
        context: &mut Context<'_>,
        config: &DevicesConfig,
        act: impl FnOnce(&mut Function, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let function = self.functions.get_mut(index)?;
        let mut bus = Bus::new(&mut *context.memory, config);
        let mut dma = Dma {
            device: id(index),
            is_master: function.is_master(),
            iommu: self.iommu.as_mut(),
            bus: &mut bus,
        };
        let mut inner = Context {
            now: context.now,
            clock: context.clock,
            memory: &mut dma,
            effects: &mut *context.effects,
        };
        let result = act(function, &mut inner);
        // What its writes at the end of a request have taken is not waited for.
        dma.take_time();
        dma.bus.messages.drain(..).for_each(|message| {
            context.effects.msis.push(message);
        });
        // The function may be allowed to access memory by now.
        dma.is_master = function.is_master();
        for message in function.take_messages() {
            // A message that is refused is lost.
            let _ = dma.store(message.address, &message.data.to_le_bytes());
            let due = context.now.after(dma.take_time());
            for message in dma.bus.messages.drain(..) {
                match due > context.now {
                    true => self.under_way.push((due, message)),
                    false => context.effects.msis.push(message),
                }
            }
        }
        self.drive(context);
        Some(result)
    }

    /// Drives the lines.
    fn drive(&mut self, context: &mut Context<'_>) {
        let mut lines = [false; LINES];
        for (index, function) in self.functions.iter().enumerate() {
            // INTA of device 0 leads to the first line, that of device 1 to the second, and so on.
            if let Some(line) = lines.get_mut((index + 1) % LINES) {
                *line |= function.level();
            }
        }
        for (number, (old, new)) in (0..).zip(self.lines.iter_mut().zip(lines)) {
            if *old != new {
                context.set_line(map::PCI_SOURCE + number, new);
                *old = new;
            }
        }
        let Some(iommu) = &self.iommu else {
            return;
        };
        let lines = iommu.lines();
        for (number, (old, new)) in (0..).zip(self.iommu_lines.iter_mut().zip(lines)) {
            if *old != new {
                context.set_line(map::IOMMU_SOURCE + number, new);
                *old = new;
            }
        }
    }

    /// Lets the IOMMU do something.
    fn with_iommu<T>(
        &mut self,
        context: &mut Context<'_>,
        config: &DevicesConfig,
        act: impl FnOnce(&mut Iommu, &mut dyn Memory, Cycles) -> Result<T, AccessFault>,
    ) -> Result<T, AccessFault> {
        let iommu = self.iommu.as_mut().ok_or(AccessFault)?;
        let mut bus = Bus::new(&mut *context.memory, config);
        let result = act(iommu, &mut bus, context.now);
        context.effects.msis.append(&mut bus.messages);
        self.drive(context);
        result
    }

    /// Reads registers of the IOMMU.
    ///
    /// # Errors
    /// [`AccessFault`] unless it is an aligned word or doubleword.
    pub fn read_iommu(
        &mut self,
        offset: u64,
        size: u8,
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<u64, AccessFault> {
        self.with_iommu(context, config, |iommu, memory, now| {
            iommu.read_register(offset, size, now, memory)
        })
    }

    /// Writes registers of the IOMMU.
    ///
    /// # Errors
    /// As for [`Pci::read_iommu`].
    pub fn write_iommu(
        &mut self,
        offset: u64,
        (size, value): (u8, u64),
        context: &mut Context<'_>,
        config: &DevicesConfig,
    ) -> Result<(), AccessFault> {
        self.with_iommu(context, config, |iommu, memory, now| {
            iommu.write_register(offset, size, value, now, memory)
        })
    }

    /// Lets everything behind the bridge do what is due.
    pub fn tick(&mut self, context: &mut Context<'_>, config: &DevicesConfig) {
        let now = context.now;
        let (due, later) = core::mem::take(&mut self.under_way)
            .into_iter()
            .partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.under_way = later;
        let due = due.into_iter().map(|(_, message)| message);
        context.effects.msis.extend(due);
        if self
            .iommu
            .as_ref()
            .is_some_and(|own| own.next_event().is_some())
        {
            let _ = self.with_iommu(context, config, |iommu, memory, now| {
                iommu.run_commands(now, memory);
                Ok(())
            });
        }
        for index in 0..self.functions.len() {
            self.with(index, context, config, Function::tick);
        }
    }

    /// When something is to be done next.
    #[must_use]
    pub fn next_event(&self) -> Option<Cycles> {
        let messages = self.under_way.iter().map(|(at, _)| *at);
        let functions = self.functions.iter().filter_map(Function::next_event);
        let iommu = self.iommu.as_ref().and_then(Iommu::next_event);
        messages.chain(functions).chain(iommu).min()
    }
}

/// Number of the device on bus 0 to which an offset in configuration space belongs, if it is function 0 of one, and the offset there.
const fn place(offset: u64) -> (Option<usize>, usize) {
    let function = offset / CONFIGURATION_BYTES;
    let at = (offset % CONFIGURATION_BYTES) as usize;
    let is_first = function.is_multiple_of(8) && function < 256;
    match is_first {
        true => (Some(function as usize / 8), at),
        false => (None, at),
    }
}
