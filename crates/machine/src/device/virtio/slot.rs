//! The memory-mapped transport: one slot, with a device in it or empty.

use riscv::virtio::mmio::{CONFIGURATION_CHANGE, MAGIC, USED_BUFFER, VERSION, register};
use serde::{Deserialize, Serialize};

use super::VirtioDevice;
use super::core::{Core, Signals, half, set_half};
use super::queue::Queue;
use crate::device::{AccessFault, Context, Cycles, Device};

/// "PRTT", little-endian (virtio 1.2, 4.2.2). It differs from the vendor of the hypervisor's emulated devices, so that a guest tells
/// them apart.
const VENDOR: u32 = 0x5454_5250;

/// A slot of the board.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Slot {
    source: u32,
    core: Core,
    device_features_select: u32,
    driver_features_select: u32,
    queue_select: u32,
    interrupt_status: u32,
}

impl Slot {
    /// An empty slot on APLIC source `source`.
    #[must_use]
    pub fn new(source: u32) -> Self {
        Self {
            source,
            ..Self::default()
        }
    }

    /// Puts a device in the slot. With `access_platform` the driver is to use the platform's DMA
    /// addresses (`VIRTIO_F_ACCESS_PLATFORM`).
    pub fn insert(&mut self, device: VirtioDevice, access_platform: bool) {
        *self = Self {
            source: self.source,
            core: Core::new(device, access_platform),
            ..Self::default()
        };
    }

    /// The device in the slot.
    #[must_use]
    pub const fn device(&self) -> Option<&VirtioDevice> {
        self.core.device()
    }

    /// The device in the slot, to attach its host's side or give it frames.
    pub const fn device_mut(&mut self) -> Option<&mut VirtioDevice> {
        self.core.device_mut()
    }

    /// Tests whether the device has found the driver to break the rules, and waits for a reset.
    #[must_use]
    pub const fn needs_reset(&self) -> bool {
        self.core.needs_reset()
    }

    fn drive(&self, context: &mut Context<'_>) {
        context.set_line(self.source, self.interrupt_status != 0);
    }

    /// Notes what the device wants to interrupt for.
    fn note(&mut self, signals: &Signals) {
        if !signals.queues.is_empty() {
            self.interrupt_status |= USED_BUFFER;
        }
        if signals.configuration {
            self.interrupt_status |= CONFIGURATION_CHANGE;
        }
    }

    fn notify(&mut self, queue: u32, context: &mut Context<'_>) {
        let Ok(queue) = u16::try_from(queue) else {
            return;
        };
        let signals = self.core.notify(queue, context);
        self.note(&signals);
        self.drive(context);
    }

    fn set_status(&mut self, status: u32, context: &mut Context<'_>) {
        if status == 0 {
            self.core.reset();
            *self = Self {
                source: self.source,
                core: core::mem::take(&mut self.core),
                ..Self::default()
            };
        } else {
            let signals = self.core.set_status(status, context);
            self.note(&signals);
        }
        self.drive(context);
    }

    fn selected(&mut self) -> Option<&mut Queue> {
        self.core.queue_mut(self.queue_select as usize)
    }

    fn read_register(&mut self, offset: u64) -> u32 {
        let features = self.core.features();
        match offset {
            register::MAGIC => MAGIC,
            register::VERSION => VERSION,
            register::DEVICE_ID => self.device().map_or(0, |device| device.model().device_id()),
            register::VENDOR_ID => VENDOR,
            register::DEVICE_FEATURES => half(features, self.device_features_select),
            register::QUEUE_SIZE_MAX => self.selected().map_or(0, |queue| queue.largest().into()),
            register::QUEUE_READY => self.selected().map_or(0, |queue| queue.is_ready().into()),
            register::INTERRUPT_STATUS => self.interrupt_status,
            register::STATUS => self.core.status(),
            // No shared memory region exists: length and base of all ones (§4.2.2).
            offset if register::SHARED_MEMORY.contains(&offset) => u32::MAX,
            // The configuration never changes.
            register::CONFIGURATION_GENERATION => 0,
            _ => 0,
        }
    }

    fn write_register(&mut self, offset: u64, value: u32, context: &mut Context<'_>) {
        match offset {
            register::DEVICE_FEATURES_SELECT => self.device_features_select = value,
            register::DRIVER_FEATURES_SELECT => self.driver_features_select = value,
            register::DRIVER_FEATURES => {
                if !self.core.has_features() {
                    set_half(
                        &mut self.core.driver_features,
                        self.driver_features_select,
                        value,
                    );
                }
            }
            register::QUEUE_SELECT => self.queue_select = value,
            register::QUEUE_SIZE => {
                if let Some(queue) = self.selected() {
                    queue.set_size(value);
                }
            }
            register::QUEUE_READY => {
                let queue = self.queue_select as usize;
                let signals = self.core.set_ready(queue, value & 1 != 0, context);
                self.note(&signals);
                self.drive(context);
            }
            register::QUEUE_NOTIFY => self.notify(value, context),
            register::INTERRUPT_ACKNOWLEDGE => {
                self.interrupt_status &= !value;
                self.drive(context);
            }
            register::STATUS => self.set_status(value, context),
            _ => self.write_area(offset, value),
        }
    }

    /// A half of one of a queue's addresses; they cannot be changed while it is in use.
    fn write_area(&mut self, offset: u64, value: u32) {
        let Some(queue) = self.selected().filter(|queue| !queue.is_ready()) else {
            return;
        };
        let (area, part) = match offset {
            register::QUEUE_DESCRIPTORS => (&mut queue.descriptor_area, 0),
            register::QUEUE_DESCRIPTORS_HIGH => (&mut queue.descriptor_area, 1),
            register::QUEUE_DRIVER => (&mut queue.driver_area, 0),
            register::QUEUE_DRIVER_HIGH => (&mut queue.driver_area, 1),
            register::QUEUE_DEVICE => (&mut queue.device_area, 0),
            register::QUEUE_DEVICE_HIGH => (&mut queue.device_area, 1),
            _ => return,
        };
        set_half(area, part, value);
    }
}

impl Device for Slot {
    fn read(
        &mut self,
        offset: u64,
        size: u8,
        _context: &mut Context<'_>,
    ) -> Result<u64, AccessFault> {
        if offset >= register::CONFIGURATION {
            let offset = offset - register::CONFIGURATION;
            return Ok(self.core.read_configuration(offset, size));
        }
        if size != 4 || !offset.is_multiple_of(4) {
            return Err(AccessFault);
        }
        Ok(u64::from(self.read_register(offset)))
    }

    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        if offset >= register::CONFIGURATION {
            let offset = offset - register::CONFIGURATION;
            self.core.write_configuration(offset, size, value);
            return Ok(());
        }
        if size != 4 || !offset.is_multiple_of(4) {
            return Err(AccessFault);
        }
        self.write_register(offset, value as u32, context);
        Ok(())
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        if !self.core.take_due(context.now).is_empty() {
            self.interrupt_status |= USED_BUFFER;
            self.drive(context);
        }
        if self.core.is_live() {
            let signals = self.core.tick(context);
            self.note(&signals);
            self.drive(context);
        }
    }

    fn next_event(&self) -> Option<Cycles> {
        self.core.next_event()
    }
}
