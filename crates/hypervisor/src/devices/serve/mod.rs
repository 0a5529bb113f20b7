//! PCI device by which a VM serves disks to others: its registers, its configuration space, and where both lie. `abi::serve` says what the
//! program in the guest sees; [`disk::served`](crate::devices::virtio::backend::disk::served) keeps what is under way.

mod configuration;
pub mod place;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use abi::monitor::ExitCause;
use abi::serve::{IDENTITY, VERSION, register};
use abi::system::VmName;

use self::configuration::Configuration;
use self::place::Places;
use crate::devices::trapped::{Access, DeviceContext, TrappedDevice, VirtioContext, WouldBlock};
use crate::devices::virtio::backend::disk::DiskNumber;
use crate::devices::virtio::client::Clients;
use crate::hart::decode::Width;
use crate::memory::address::PAGE_SIZE;

/// A disk that the VM serves.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    pub disk: DiskNumber,
    pub name: VmName,
    pub sectors: u64,
}

/// The device.
#[derive(Debug)]
pub struct ServingDevice {
    disks: Vec<Exported>,
    configuration: Configuration,
    /// Offset of the configuration space in the device's range, behind its registers.
    configuration_at: u64,
    /// Set if a disk has requests that the program has not seen.
    is_pending: bool,
    /// The disks for which the program's life has yet to begin, a bit each.
    starting: u32,
}

impl ServingDevice {
    /// Device for these disks, [`MAX_SERVED`](abi::system::MAX_SERVED) at most.
    #[must_use]
    pub fn new(disks: Vec<Exported>) -> Self {
        let places = Places::of(disks.len());
        Self {
            configuration: Configuration::new(places),
            configuration_at: places.configuration.base().raw() - places.registers.base().raw(),
            disks,
            is_pending: false,
            starting: 0,
        }
    }

    /// Asks all disks whether the program is to look at them.
    fn refresh(&mut self, context: &dyn VirtioContext) {
        let mut any = false;
        for exported in &self.disks {
            context.with_disk(exported.disk, &mut |disk, board| {
                any |= disk
                    .at_program()
                    .is_some_and(|served| served.is_pending(board.host()));
            });
        }
        self.is_pending = any;
    }

    fn load_register(&self, offset: u64, context: &dyn VirtioContext) -> u32 {
        match offset {
            register::IDENTITY => IDENTITY,
            register::VERSION => VERSION,
            register::DISKS => self.disks.len() as u32,
            register::INTERRUPT => self.is_pending.into(),
            register::REFUSED => {
                let mut refused = 0_u32;
                for exported in &self.disks {
                    context.with_disk(exported.disk, &mut |disk, _| {
                        let served = disk.at_program();
                        let more = served.map_or(0, |served| served.refused());
                        refused = refused.wrapping_add(more);
                    });
                }
                refused
            }
            _ => self.property(offset).unwrap_or(0),
        }
    }

    /// A word of the properties of the disks.
    fn property(&self, offset: u64) -> Option<u32> {
        let place = offset.checked_sub(register::DISK)?;
        let disk = self.disks.get((place / register::DISK_BYTES) as usize)?;
        match place % register::DISK_BYTES {
            register::SECTORS => Some(disk.sectors as u32),
            at if at == register::SECTORS + 4 => Some((disk.sectors >> 32) as u32),
            at if at < register::NAME_BYTES => {
                let name = disk.name.as_str().as_bytes();
                let byte = |index: usize| name.get(at as usize + index).copied().unwrap_or(0);
                Some(u32::from_le_bytes(core::array::from_fn(byte)))
            }
            _ => None,
        }
    }

    /// Takes the answers for a disk.
    fn take_answers(&self, disk: u32, context: &dyn VirtioContext) -> Result<(), WouldBlock> {
        let Some(exported) = self.disks.get(disk as usize) else {
            return Ok(());
        };
        let (mut told, mut is_done) = (Clients::NONE, true);
        context.with_disk(exported.disk, &mut |disk, board| {
            (told, is_done) = disk.take_answers(board);
        });
        told.iter().for_each(|client| context.notify_client(client));
        match is_done {
            true => Ok(()),
            // The harts that may still reach pages of the clients have to leave the guest first.
            false => Err(WouldBlock),
        }
    }

    /// Begins a life of the program, when all of its last life is taken back.
    fn start(&mut self, context: &dyn VirtioContext) -> Result<(), WouldBlock> {
        if self.starting == 0 {
            self.stop(context);
            self.starting = (1 << self.disks.len()) - 1;
        }
        for (number, exported) in self.disks.iter().enumerate() {
            if self.starting & 1 << number == 0 {
                continue;
            }
            let mut told = None;
            context.with_disk(exported.disk, &mut |disk, board| {
                told = disk.start_program(board);
            });
            if let Some(told) = told {
                self.starting &= !(1 << number);
                told.iter().for_each(|client| context.notify_client(client));
            }
        }
        match self.starting {
            0 => Ok(()),
            _ => Err(WouldBlock),
        }
    }

    fn stop(&self, context: &dyn VirtioContext) {
        for exported in &self.disks {
            context.with_disk(exported.disk, &mut |disk, board| disk.stop_program(board));
        }
    }
}

impl TrappedDevice for ServingDevice {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioVirtio
    }

    fn load(&mut self, access: Access, context: &dyn DeviceContext) -> u64 {
        let Some(context) = context.virtio() else {
            return 0;
        };
        self.refresh(context);
        match access.offset.checked_sub(self.configuration_at) {
            Some(offset) => self
                .configuration
                .load(Access { offset, ..access }, self.is_pending),
            None if access.width == Width::Word && access.offset < PAGE_SIZE => {
                self.load_register(access.offset, context).into()
            }
            None => 0,
        }
    }

    fn store(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn DeviceContext,
    ) -> Result<(), WouldBlock> {
        let Some(context) = context.virtio() else {
            return Ok(());
        };
        let taken = match access.offset.checked_sub(self.configuration_at) {
            Some(offset) => {
                self.configuration.store(Access { offset, ..access }, value);
                Ok(())
            }
            None => match (access.offset, access.width) {
                (register::DOORBELL, Width::Word) => self.take_answers(value as u32, context),
                (register::START, Width::Word) => self.start(context),
                _ => Ok(()),
            },
        };
        self.refresh(context);
        taken
    }

    fn poll(&mut self, context: &dyn DeviceContext) {
        if let Some(context) = context.virtio() {
            self.refresh(context);
        }
    }

    fn irq_level(&self) -> bool {
        self.is_pending && self.configuration.interrupts()
    }

    fn reset(&mut self, context: &dyn DeviceContext) {
        if let Some(context) = context.virtio() {
            self.stop(context);
        }
        self.configuration.reset();
        (self.is_pending, self.starting) = (false, 0);
    }
}
