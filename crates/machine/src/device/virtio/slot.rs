//! The memory-mapped transport: one slot, with a device in it or empty.

use riscv::virtio::mmio::{CONFIGURATION_CHANGE, MAGIC, USED_BUFFER, VERSION, register};
use riscv::virtio::status::{ACKNOWLEDGE, DRIVER, DRIVER_OK, FAILED, FEATURES_OK, NEEDS_RESET};
use serde::{Deserialize, Serialize};

use super::VirtioDevice;
use super::model::{ACCESS_PLATFORM, EVENT_INDEX, INDIRECT_DESCRIPTORS, Io, Model, VERSION_1};
use super::queue::{Broken, Queue};
use crate::device::{AccessFault, Context, Cycles, Device};

/// "PRTT", little-endian (virtio 1.2, 4.2.2). It differs from the vendor of the hypervisor's emulated devices, so that a guest tells
/// them apart.
const VENDOR: u32 = 0x5454_5250;

/// The bits that a driver writes; the others are the device's or reserved.
const DRIVER_STATUS: u32 = ACKNOWLEDGE | DRIVER | DRIVER_OK | FEATURES_OK | FAILED;

/// A slot of the board.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Slot {
    source: u32,
    device: Option<VirtioDevice>,
    access_platform: bool,
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u32,
    queues: Vec<Queue>,
    status: u32,
    interrupt_status: u32,
    late: Vec<Cycles>,
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
            access_platform,
            ..Self::default()
        };
        self.queues = new_queues(device.model());
        self.device = Some(device);
    }

    /// The device in the slot.
    #[must_use]
    pub const fn device(&self) -> Option<&VirtioDevice> {
        self.device.as_ref()
    }

    /// The device in the slot, to attach its host's side or give it frames.
    pub const fn device_mut(&mut self) -> Option<&mut VirtioDevice> {
        self.device.as_mut()
    }

    /// Tests whether the device has found the driver to break the rules, and waits for a reset.
    #[must_use]
    pub const fn needs_reset(&self) -> bool {
        self.status & NEEDS_RESET != 0
    }

    fn features(&self) -> u64 {
        let Some(device) = &self.device else { return 0 };
        let platform = if self.access_platform {
            ACCESS_PLATFORM
        } else {
            0
        };
        VERSION_1 | INDIRECT_DESCRIPTORS | EVENT_INDEX | platform | device.model().features()
    }

    fn is_live(&self) -> bool {
        self.status & (FEATURES_OK | DRIVER_OK | NEEDS_RESET) == FEATURES_OK | DRIVER_OK
    }

    fn drive(&self, context: &mut Context<'_>) {
        context.set_line(self.source, self.interrupt_status != 0);
    }

    /// The driver broke the rules: the device stops until it is reset (§2.1.1).
    fn fail(&mut self) {
        self.status |= NEEDS_RESET;
        if self.status & DRIVER_OK != 0 {
            self.interrupt_status |= CONFIGURATION_CHANGE;
        }
    }

    /// Lets the device work if it is live, and acts on what comes of it.
    fn work(
        &mut self,
        context: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Model, &mut Io<'_, '_>) -> Result<(), Broken>,
    ) {
        if !self.is_live() {
            return;
        }
        let Some(device) = &mut self.device else {
            return;
        };
        let mut io = Io {
            queues: &mut self.queues,
            context,
            features: self.driver_features,
            raise: false,
            late: &mut self.late,
        };
        let result = act(device.model_mut(), &mut io);
        if io.raise {
            self.interrupt_status |= USED_BUFFER;
        }
        if result.is_err() {
            self.fail();
        }
        self.drive(context);
    }

    fn notify(&mut self, queue: u32, context: &mut Context<'_>) {
        let Ok(queue) = u16::try_from(queue) else {
            return;
        };
        if usize::from(queue) < self.queues.len() {
            self.work(context, |model, io| model.notify(queue, io));
        }
    }

    fn set_status(&mut self, status: u32, context: &mut Context<'_>) {
        if status == 0 {
            self.reset();
            self.drive(context);
            return;
        }
        let was_live = self.is_live();
        let offered = self.features();
        let acceptable =
            self.driver_features & !offered == 0 && self.driver_features & VERSION_1 != 0;
        // The device keeps FEATURES_OK clear if it cannot work with the driver's choice.
        let refused = if acceptable { 0 } else { FEATURES_OK };
        self.status = (status & DRIVER_STATUS & !refused) | (self.status & NEEDS_RESET);
        if !was_live && self.is_live() {
            // Chains may wait already.
            for queue in (0..).take(self.queues.len()) {
                self.notify(queue, context);
            }
        }
    }

    fn reset(&mut self) {
        let device = self.device.take();
        let (source, access_platform) = (self.source, self.access_platform);
        *self = Self {
            source,
            access_platform,
            device,
            ..Self::default()
        };
        if let Some(device) = &mut self.device {
            device.model_mut().reset();
            self.queues = new_queues(device.model());
        }
    }

    fn selected(&mut self) -> Option<&mut Queue> {
        self.queues.get_mut(self.queue_select as usize)
    }

    fn set_ready(&mut self, ready: bool, context: &Context<'_>) {
        let event_index = self.driver_features & EVENT_INDEX != 0;
        let Some(queue) = self.selected() else { return };
        if !ready {
            queue.retire();
        } else if queue.make_ready(event_index, context.memory).is_err() {
            self.fail();
        }
    }

    fn read_config(&self, offset: u64, size: u8) -> u64 {
        let bytes = self
            .device
            .as_ref()
            .map(|device| device.model().configuration());
        let byte = |index: u64| {
            let at = usize::try_from(offset.checked_add(index)?).ok()?;
            bytes.as_ref()?.get(at).copied()
        };
        // What lies behind the device's fields reads as zero.
        (0..u64::from(size)).fold(0, |value, index| {
            value | u64::from(byte(index).unwrap_or(0)) << (8 * index)
        })
    }

    fn read_register(&mut self, offset: u64) -> u32 {
        let features = self.features();
        match offset {
            register::MAGIC => MAGIC,
            register::VERSION => VERSION,
            register::DEVICE_ID => self
                .device
                .as_ref()
                .map_or(0, |device| device.model().device_id()),
            register::VENDOR_ID => VENDOR,
            register::DEVICE_FEATURES => half(features, self.device_features_select),
            register::QUEUE_SIZE_MAX => self.selected().map_or(0, |queue| queue.largest().into()),
            register::QUEUE_READY => self.selected().map_or(0, |queue| queue.is_ready().into()),
            register::INTERRUPT_STATUS => self.interrupt_status,
            register::STATUS => self.status,
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
                if self.status & FEATURES_OK == 0 {
                    set_half(
                        &mut self.driver_features,
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
                self.set_ready(value & 1 != 0, context);
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

fn new_queues(model: &dyn Model) -> Vec<Queue> {
    model.queue_sizes().into_iter().map(Queue::new).collect()
}

/// The word of a 64-bit value that a selector names; there are but two.
fn half(value: u64, select: u32) -> u32 {
    match select {
        0 => value as u32,
        1 => (value >> 32) as u32,
        _ => 0,
    }
}

fn set_half(value: &mut u64, select: u32, word: u32) {
    match select {
        0 => *value = (*value & !0xffff_ffff) | u64::from(word),
        1 => *value = (*value & 0xffff_ffff) | u64::from(word) << 32,
        _ => {}
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
            return Ok(self.read_config(offset - register::CONFIGURATION, size));
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
            if let Some(device) = &mut self.device {
                device
                    .model_mut()
                    .configure(offset - register::CONFIGURATION, size, value);
            }
            return Ok(());
        }
        if size != 4 || !offset.is_multiple_of(4) {
            return Err(AccessFault);
        }
        self.write_register(offset, value as u32, context);
        Ok(())
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        let due = self.late.iter().any(|&at| at <= context.now);
        if due {
            let now = context.now;
            self.late.retain(|&at| at > now);
            self.interrupt_status |= USED_BUFFER;
            self.drive(context);
        }
        self.work(context, |model, io| model.tick(io));
    }

    fn next_event(&self) -> Option<Cycles> {
        let device = self.device.as_ref().filter(|_| self.is_live());
        let own = device.and_then(|device| device.model().next_event());
        self.late.iter().copied().chain(own).min()
    }
}
