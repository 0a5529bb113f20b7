//! A virtio device as a function of PCI (virtio 1.2, §4.1), without the parts for drivers from before version 1.0.

use riscv::pci::{capability, command, header, status as pci_status};
use riscv::virtio::pci::{DEVICE, NO_VECTOR, VENDOR, common, isr, structure};
use serde::{Deserialize, Serialize};

use super::configuration::{Configuration, Identity};
use super::msix::Msix;
use crate::device::virtio::{Core, Signals, VirtioDevice, half, set_half};
use crate::device::{Context, Cycles, Msi};

/// Base address register of the table of vectors.
const VECTORS_BAR: u8 = 1;
/// Base address register of the structures, each in a page.
const STRUCTURES_BAR: u8 = 4;
/// Bytes of a structure.
const PAGE: u64 = 4096;
/// Structures in the order of their pages.
const STRUCTURES: [u8; 4] = [
    structure::COMMON,
    structure::ISR,
    structure::DEVICE,
    structure::NOTIFY,
];
/// Bytes from the notification address of a queue to that of the next.
const NOTIFY_STEP: u32 = 4;
/// Most vectors: MSI-X has one pending word here.
const MAX_VECTORS: usize = 64;
/// Class of a disk, and of a network card, with the revision of devices of version 1.0.
const DISK: u32 = 0x01_00_00 << 8 | 1;
const CARD: u32 = 0x02_00_00 << 8 | 1;
const OTHER: u32 = 0xff_00_00 << 8 | 1;

/// A function.
#[derive(Debug, Serialize, Deserialize)]
pub struct Function {
    configuration: Configuration,
    msix: Msix,
    core: Core,
    device_features_select: u32,
    driver_features_select: u32,
    queue_select: u16,
    configuration_vector: u16,
    queue_vectors: Vec<u16>,
    interrupt_status: u8,
    /// Where the capability for accesses through configuration space stands.
    access: usize,
}

/// Body of a capability of virtio (§4.1.4), behind id and link.
fn describe(kind: u8, bar: u8, offset: u32, length: u32, more: &[u8]) -> Vec<u8> {
    let mut body = vec![16 + more.len() as u8, kind, bar, 0, 0, 0];
    body.extend_from_slice(&offset.to_le_bytes());
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(more);
    body
}

impl Function {
    /// A function with this device. Its driver is to use the addresses that the platform says.
    #[must_use]
    pub fn new(device: VirtioDevice) -> Self {
        let kind = device.model().device_id();
        let class = match &device {
            VirtioDevice::Block(_) => DISK,
            VirtioDevice::Net(_) => CARD,
            _ => OTHER,
        };
        let mut configuration = Configuration::new(&Identity {
            vendor: VENDOR,
            device: DEVICE + kind as u16,
            class,
            subsystem: DEVICE + kind as u16,
        });
        configuration.put(header::INTERRUPT_PIN, &[1]);
        let core = Core::new(device, true);
        let queues = core.queues();
        configuration.add_registers(STRUCTURES_BAR.into(), PAGE * STRUCTURES.len() as u64, true);
        let vectors = (queues + 1).min(MAX_VECTORS);
        let msix = Msix::new(&mut configuration, VECTORS_BAR, vectors);
        for (kind, page) in STRUCTURES.into_iter().zip(0..) {
            let more = NOTIFY_STEP.to_le_bytes();
            let more: &[u8] = match kind {
                structure::NOTIFY => &more,
                _ => &[],
            };
            let offset = page * PAGE as u32;
            let body = describe(kind, STRUCTURES_BAR, offset, PAGE as u32, more);
            configuration.add_capability(capability::VENDOR, &body);
        }
        let body = describe(structure::ACCESS, 0, 0, 0, &[0; 4]);
        let access = configuration.add_capability(capability::VENDOR, &body);
        // Software says which register, where, and how many bytes.
        configuration.allow(access + 4, &[0xff]);
        configuration.allow(access + 8, &[0xff; 8]);
        configuration.add_express();
        Self {
            configuration,
            msix,
            core,
            device_features_select: 0,
            driver_features_select: 0,
            queue_select: 0,
            configuration_vector: NO_VECTOR,
            queue_vectors: vec![NO_VECTOR; queues],
            interrupt_status: 0,
            access,
        }
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> Option<&VirtioDevice> {
        self.core.device()
    }

    pub const fn device_mut(&mut self) -> Option<&mut VirtioDevice> {
        self.core.device_mut()
    }

    /// Tests whether software lets the function access memory.
    pub fn is_master(&self) -> bool {
        self.configuration.has(command::MASTER)
    }

    /// Level of the wire INTA.
    pub fn level(&self) -> bool {
        self.interrupt_status != 0
            && !self.msix.is_enabled(&self.configuration)
            && !self.configuration.has(command::INTERRUPT_DISABLE)
    }

    /// Takes the messages that are to be sent.
    pub fn take_messages(&mut self) -> Vec<Msi> {
        match self.is_master() {
            true => self.msix.take(&self.configuration),
            false => Vec::new(),
        }
    }

    /// The base address register behind which an address lies, and the offset there.
    pub fn find(&self, address: u64) -> Option<(usize, u64)> {
        self.configuration.find(address)
    }

    /// Notes what the device wants to interrupt for.
    fn note(&mut self, signals: &Signals) {
        let by_message = self.msix.is_enabled(&self.configuration);
        if signals.configuration {
            match by_message {
                true => self.msix.raise(self.configuration_vector),
                false => self.interrupt_status |= isr::CONFIGURATION,
            }
        }
        for queue in &signals.queues {
            let vector = self.queue_vectors.get(usize::from(*queue)).copied();
            match by_message {
                true => self.msix.raise(vector.unwrap_or(NO_VECTOR)),
                false => self.interrupt_status |= isr::QUEUE,
            }
        }
    }

    /// Reads configuration space; the offset is a multiple of the size, which is 4 at most.
    pub fn read_configuration(
        &mut self,
        offset: usize,
        size: u8,
        context: &mut Context<'_>,
    ) -> u32 {
        if let Some((bar, at)) = self.window(offset, size) {
            let value = self.read(bar, at, size, context);
            self.configuration
                .put(self.access + 16, &value.to_le_bytes());
        }
        let pending = match self.interrupt_status != 0 && !self.msix.is_enabled(&self.configuration)
        {
            true => pci_status::INTERRUPT,
            false => 0,
        };
        let status = pci_status::CAPABILITIES | pending;
        self.configuration
            .put(header::STATUS, &status.to_le_bytes());
        self.configuration.read(offset, size)
    }

    /// Writes configuration space, as [`Function::read_configuration`].
    pub fn write_configuration(
        &mut self,
        offset: usize,
        size: u8,
        value: u32,
        context: &mut Context<'_>,
    ) {
        self.configuration.write(offset, size, value);
        if let Some((bar, at)) = self.window(offset, size) {
            self.write(bar, at, size, value, context);
        }
    }

    /// Where an access to the data of the capability for accesses leads (§4.1.4.9).
    fn window(&self, offset: usize, size: u8) -> Option<(usize, u64)> {
        let field = |at: usize, size: u8| self.configuration.read(self.access + at, size);
        let (bar, at, length) = (field(4, 1), field(8, 4), field(12, 4));
        let is_sound = offset == self.access + 16
            && length == u32::from(size)
            && at.is_multiple_of(length.max(1));
        is_sound.then_some((bar as usize, at.into()))
    }

    /// Reads registers behind a base address register; the offset is a multiple of the size, which is 4 at most.
    pub fn read(&mut self, bar: usize, offset: u64, size: u8, _context: &mut Context<'_>) -> u32 {
        let (page, at) = (offset / PAGE, offset % PAGE);
        if bar == usize::from(VECTORS_BAR) {
            let word = self.msix.read(offset & !3);
            return (word >> (8 * (offset & 3))) & mask(size);
        }
        if bar != usize::from(STRUCTURES_BAR) {
            return 0;
        }
        match STRUCTURES.get(page as usize) {
            Some(&structure::COMMON) => self.read_common(at) & mask(size),
            Some(&structure::ISR) if at == 0 => core::mem::take(&mut self.interrupt_status).into(),
            Some(&structure::DEVICE) => self.core.read_configuration(at, size) as u32,
            _ => 0,
        }
    }

    /// Writes registers behind a base address register, as [`Function::read`].
    pub fn write(
        &mut self,
        bar: usize,
        offset: u64,
        size: u8,
        value: u32,
        context: &mut Context<'_>,
    ) {
        let (page, at) = (offset / PAGE, offset % PAGE);
        if bar == usize::from(VECTORS_BAR) && size == 4 {
            self.msix.write(offset, value);
        }
        if bar != usize::from(STRUCTURES_BAR) {
            return;
        }
        match STRUCTURES.get(page as usize) {
            Some(&structure::COMMON) => self.write_common(at, value, context),
            Some(&structure::DEVICE) => {
                self.core.write_configuration(at, size, value.into());
            }
            Some(&structure::NOTIFY) => {
                let queue = at / u64::from(NOTIFY_STEP);
                let signals = self.core.notify(queue as u16, context);
                self.note(&signals);
            }
            _ => {}
        }
    }

    fn read_common(&self, offset: u64) -> u32 {
        let queue = self.core.queue(self.queue_select.into());
        let area = |low: u64| {
            let queue = queue?;
            let area = match low & !7 {
                common::QUEUE_DESCRIPTORS => queue.descriptor_area,
                common::QUEUE_DRIVER => queue.driver_area,
                _ => queue.device_area,
            };
            Some((area >> (8 * (low & 4))) as u32)
        };
        let vector = self.queue_vectors.get(usize::from(self.queue_select));
        match offset {
            common::DEVICE_FEATURE_SELECT => self.device_features_select,
            common::DEVICE_FEATURE => half(self.core.features(), self.device_features_select),
            common::DRIVER_FEATURE_SELECT => self.driver_features_select,
            common::DRIVER_FEATURE => half(self.core.driver_features, self.driver_features_select),
            common::CONFIGURATION_VECTOR => self.configuration_vector.into(),
            common::QUEUES => self.core.queues() as u32,
            common::STATUS => self.core.status(),
            common::QUEUE_SELECT => self.queue_select.into(),
            common::QUEUE_SIZE => queue.map_or(0, |queue| queue.size().into()),
            common::QUEUE_VECTOR => vector.copied().unwrap_or(NO_VECTOR).into(),
            common::QUEUE_ENABLE => queue.map_or(0, |queue| queue.is_ready().into()),
            common::QUEUE_NOTIFY_OFFSET => self.queue_select.into(),
            common::QUEUE_DESCRIPTORS..common::BYTES => area(offset).unwrap_or(0),
            // The configuration never changes.
            _ => 0,
        }
    }

    fn write_common(&mut self, offset: u64, value: u32, context: &mut Context<'_>) {
        let select = usize::from(self.queue_select);
        match offset {
            common::DEVICE_FEATURE_SELECT => self.device_features_select = value,
            common::DRIVER_FEATURE_SELECT => self.driver_features_select = value,
            common::DRIVER_FEATURE if !self.core.has_features() => {
                let half = self.driver_features_select;
                set_half(&mut self.core.driver_features, half, value);
            }
            common::CONFIGURATION_VECTOR => self.configuration_vector = self.known(value),
            common::STATUS => self.set_status(value & 0xff, context),
            common::QUEUE_SELECT => self.queue_select = value as u16,
            common::QUEUE_SIZE => {
                if let Some(queue) = self.core.queue_mut(select) {
                    queue.set_size(value & 0xffff);
                }
            }
            common::QUEUE_VECTOR => {
                let vector = self.known(value);
                if let Some(own) = self.queue_vectors.get_mut(select) {
                    *own = vector;
                }
            }
            // A queue is only taken out of use by a reset (§4.1.4.3.2).
            common::QUEUE_ENABLE if value & 0xffff == 1 => {
                if let Some(queue) = self.core.queue_mut(select) {
                    queue.set_size(queue.size().into());
                }
                let signals = self.core.set_ready(select, true, context);
                self.note(&signals);
            }
            common::QUEUE_DESCRIPTORS..common::BYTES => self.write_area(offset, value),
            _ => {}
        }
    }

    /// The vector, or none if it is not there (§4.1.5.1.2).
    fn known(&self, vector: u32) -> u16 {
        match (vector & 0xffff) as u16 {
            vector if usize::from(vector) < self.msix.vectors() => vector,
            _ => NO_VECTOR,
        }
    }

    /// A half of one of a queue's addresses; they cannot be changed while it is in use.
    fn write_area(&mut self, offset: u64, value: u32) {
        let queue = self.core.queue_mut(self.queue_select.into());
        let Some(queue) = queue.filter(|queue| !queue.is_ready()) else {
            return;
        };
        let area = match offset & !7 {
            common::QUEUE_DESCRIPTORS => &mut queue.descriptor_area,
            common::QUEUE_DRIVER => &mut queue.driver_area,
            _ => &mut queue.device_area,
        };
        set_half(area, (offset & 7) as u32 / 4, value);
    }

    fn set_status(&mut self, status: u32, context: &mut Context<'_>) {
        if status != 0 {
            let signals = self.core.set_status(status, context);
            self.note(&signals);
            return;
        }
        self.core.reset();
        self.msix.clear();
        self.interrupt_status = 0;
        self.device_features_select = 0;
        self.driver_features_select = 0;
        self.queue_select = 0;
        self.configuration_vector = NO_VECTOR;
        self.queue_vectors.fill(NO_VECTOR);
    }

    pub fn tick(&mut self, context: &mut Context<'_>) {
        let due = Signals {
            queues: self.core.take_due(context.now),
            configuration: false,
        };
        self.note(&due);
        let signals = self.core.tick(context);
        self.note(&signals);
    }

    pub fn next_event(&self) -> Option<Cycles> {
        self.core.next_event()
    }
}

const fn mask(size: u8) -> u32 {
    match size {
        1 => 0xff,
        2 => 0xffff,
        _ => u32::MAX,
    }
}
