//! A virtio device of the board, mediated for one VM: general I/O simulation (paper 001, §4.2.1).
//!
//! The guest's registers trap, and its queues are never the device's. At a notification each chain that the guest has made available is
//! read once, its buffers are translated piece by piece, and the chain that the device works on is built in the hypervisor's memory
//! ([`DeviceQueue`]). The device interrupts the hypervisor, which returns completions to the guest's queue and interrupts the guest.
//! So no address that a guest writes reaches a device: a guest whose devices are all mediated has only its own memory, without an
//! IOMMU.
//!
//! Ids, features and the configuration are the device's own, copied. Features that would change how queues work are not offered.

mod configuration;
pub mod queue;
mod refresh;
mod segments;
mod serve;
mod stop;
#[cfg(test)]
pub mod tests;

pub use crate::devices::virtio::queue::device::AREA;

use self::configuration::Configuration;
use self::queue::{Method, Queue};
use self::segments::Segments;
use crate::devices::irq::SourceNumber;
use crate::devices::trapped::{Access, VirtioContext, WouldBlock};
use crate::devices::virtio::queue::chain::QueueError;
use crate::devices::virtio::queue::device::{DeviceQueue, MAX_ENTRIES};
use crate::devices::virtio::transport::{
    Ids, MAX_QUEUES, Progress, QueueSetup, Queues, VirtioDevice,
};
use crate::devices::virtio::{
    ACCESS_PLATFORM, CONFIGURATION_CHANGE, DeviceKind, EVENT_INDEX, INDIRECT_DESCRIPTORS,
    QUEUE_PARTS, VERSION_1, register, status,
};
use crate::hart::decode::Width;
use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::owned::OwnedRegion;

/// Bytes of memory that a mediated device needs: for its queues, and for the page of its registers.
pub const QUEUE_BYTES: u64 = MAX_QUEUES as u64 * AREA;
pub const BYTES: u64 = QUEUE_BYTES + PAGE_SIZE;

/// Of the features that concern queues and transports (24 to 49, §6) those that a guest may have.
const QUEUE_FEATURES: u64 = ((1 << 50) - 1) & !((1 << 24) - 1);
const OFFERED_QUEUE_FEATURES: u64 = INDIRECT_DESCRIPTORS | EVENT_INDEX | VERSION_1;
/// More queues than one, of a block device (§5.2.3) and of a network device (§5.1.3; and what depends on it).
const BLOCK_QUEUES: (u32, u64) = (2, 1 << 12);
const NETWORK_QUEUES: (u32, u64) = (1, 1 << 22 | 1 << 57 | 1 << 60);

/// Configuration of a mediated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendConfig {
    /// The device's registers.
    pub registers: HostPhysical,
    /// Its source at the board's APLIC, which the hypervisor has.
    pub source: SourceNumber,
    /// Areas for the device's side of the queues, [`MAX_QUEUES`] of [`AREA`] bytes each: memory of this device alone.
    pub areas: OwnedRegion,
    /// Use the fast method (paper 001, §4.2.2).
    pub fast: bool,
    /// Page that the guest reads in place of the registers, without an exit; memory of this device alone.
    pub page: Option<OwnedRegion>,
    /// Set if the guest's memory lies in pages.
    pub in_pages: bool,
    /// Longest time between two polls of a queue that neither side notifies, in ticks; 0 if there can be none.
    pub patience: u64,
}

/// Properties that the device reports.
#[derive(Clone, Copy, Debug, Default)]
struct Identity {
    device: u32,
    vendor: u32,
    /// Features that the device offers.
    features: u64,
    entries: [u16; MAX_QUEUES],
}

/// Progress of stopping a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stopping {
    #[default]
    None,
    /// Operations in flight are awaited until then, for all queues that are being stopped.
    Waits { until: u64 },
    /// The device's reset has begun.
    Resets,
}

impl Stopping {
    #[inline]
    pub const fn is_resetting(self) -> bool {
        matches!(self, Self::Resets)
    }
}

/// The backend of a mediated device.
#[derive(Debug)]
pub struct Mediated {
    config: BackendConfig,
    identity: Identity,
    configuration: Configuration,
    /// Limits that the driver is told and that are not the device's.
    segments: Option<Segments>,
    /// Features and status that were set last, to set the device up again.
    given: (u64, u32),
    /// The device's side of each queue that the guest does not use now. Those in use are set up at the device.
    spare: [Option<DeviceQueue>; MAX_QUEUES],
    stopping: Stopping,
    /// No queue from here on has been in use.
    in_use: usize,
    /// Time of the next poll of a queue without notifications, if there is one.
    due: Option<u64>,
}

impl Mediated {
    /// The device as after power-on.
    #[must_use]
    pub fn new(config: BackendConfig) -> Self {
        Self {
            config,
            identity: Identity::default(),
            configuration: Configuration::new(),
            segments: None,
            given: (0, 0),
            spare: core::array::from_fn(|number| {
                let area = config.areas.skip(AREA * number as u64).take(AREA);
                Some(DeviceQueue::reserve(area))
            }),
            stopping: Stopping::default(),
            in_use: 0,
            due: None,
        }
    }

    fn word(&self, register: u64, context: &dyn VirtioContext) -> u32 {
        let at = HostPhysical::new(self.config.registers.raw().wrapping_add(register));
        context.load_register(at, Width::Word).unwrap_or(0) as u32
    }

    fn set_word(&self, register: u64, value: u32, context: &dyn VirtioContext) {
        let at = HostPhysical::new(self.config.registers.raw().wrapping_add(register));
        context.store_register(at, Width::Word, value.into());
    }

    /// Reads the device's ids, features and the entries of its queues.
    fn identify(&self, context: &dyn VirtioContext) -> Identity {
        let half = |word: u32| {
            self.set_word(register::DEVICE_FEATURES_SELECT, word, context);
            u64::from(self.word(register::DEVICE_FEATURES, context))
        };
        let mut identity = Identity {
            device: self.word(register::DEVICE_ID, context),
            vendor: self.word(register::VENDOR_ID, context),
            features: half(0) | half(1) << 32,
            entries: [0; MAX_QUEUES],
        };
        for (number, entries) in (0..).zip(&mut identity.entries) {
            self.set_word(register::QUEUE_SELECT, number, context);
            let max = self.word(register::QUEUE_SIZE_MAX, context);
            *entries = match max.min(MAX_ENTRIES.into()) {
                0 => 0,
                max => 1 << max.ilog2(),
            };
        }
        identity
    }

    /// Features of the limits that the hypervisor adds to the configuration.
    fn added_features(&self) -> u64 {
        self.segments.map_or(0, |_| Segments::FEATURES)
    }

    /// Gives the device the features that the driver has chosen.
    fn set_features(&mut self, chosen: u64, context: &dyn VirtioContext) {
        // The device's own addresses are the host's, whatever it calls them. Indirect tables are resolved before it sees a chain, and it
        // is notified of each chain.
        let own = self.identity.features & ACCESS_PLATFORM;
        let added = self.added_features() & !self.identity.features;
        let given = chosen & !(INDIRECT_DESCRIPTORS | EVENT_INDEX | added) | own;
        for (word, half) in [(0, given as u32), (1, (given >> 32) as u32)] {
            self.set_word(register::DRIVER_FEATURES_SELECT, word, context);
            self.set_word(register::DRIVER_FEATURES, half, context);
        }
        self.given.0 = chosen;
    }

    /// Tells the device where its side of a queue is.
    fn set_up_queue(&self, number: usize, queue: &DeviceQueue, context: &dyn VirtioContext) {
        self.set_word(register::QUEUE_SELECT, number as u32, context);
        self.set_word(register::QUEUE_SIZE, queue.max_pieces() as u32, context);
        for (register, part) in QUEUE_PARTS.into_iter().zip(queue.parts()) {
            self.set_word(register, part.raw() as u32, context);
            self.set_word(register + 4, (part.raw() >> 32) as u32, context);
        }
        self.set_word(register::QUEUE_READY, 1, context);
    }

    /// Handles an interrupt of the device, which need not be a completion.
    #[inline(never)]
    fn interrupt_reasons(&mut self, context: &dyn VirtioContext) -> Option<Progress> {
        let reasons = self.word(register::INTERRUPT_STATUS, context);
        if reasons == 0 {
            return None;
        }
        self.set_word(register::INTERRUPT_ACKNOWLEDGE, reasons, context);
        // A device that needs a reset may keep its line high without a cause: then the source is not resampled, or it would
        // interrupt for ever. A line that falls and rises sends by itself (AIA §4.7).
        context.resample(self.config.source);
        let configuration_changed = reasons & CONFIGURATION_CHANGE != 0;
        if configuration_changed {
            self.copy_configuration(context);
        }
        Some(Progress {
            configuration_changed,
            ..Progress::default()
        })
    }
}

impl VirtioDevice for Mediated {
    type Queue = Queue;

    fn power_on(&mut self, context: &dyn VirtioContext) {
        self.identity = self.identify(context);
        let is_limited = self.config.in_pages && self.identity.device == DeviceKind::Disk as u32;
        let [entries, ..] = self.identity.entries;
        self.segments = is_limited.then(|| Segments::for_queue(entries));
        self.copy_configuration(context);
    }

    fn ids(&self) -> Ids {
        Ids {
            device: self.identity.device,
            vendor: self.identity.vendor,
        }
    }

    fn features(&self) -> u64 {
        let withheld = [BLOCK_QUEUES, NETWORK_QUEUES]
            .into_iter()
            .filter(|(of, _)| *of == self.identity.device)
            .fold(QUEUE_FEATURES, |all, (_, features)| all | features);
        self.identity.features & !withheld | self.added_features() | OFFERED_QUEUE_FEATURES
    }

    fn max_entries(&self, queue: usize) -> u16 {
        self.identity.entries.get(queue).copied().unwrap_or(0)
    }

    fn configuration(&self, offset: u64) -> u8 {
        self.configuration.byte(offset)
    }

    fn generation(&self) -> u32 {
        self.configuration.generation
    }

    fn refresh_configuration(&mut self, context: &dyn VirtioContext) -> bool {
        self.refresh(context)
    }

    fn store_configuration(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn VirtioContext,
    ) -> bool {
        self.store_field(access, value, context)
    }

    fn set_status(
        &mut self,
        wanted: u32,
        features: Option<u64>,
        context: &dyn VirtioContext,
    ) -> u32 {
        if let Some(chosen) = features {
            self.set_features(chosen, context);
        }
        self.set_word(register::STATUS, wanted, context);
        let taken = match features {
            Some(_) => wanted & (self.word(register::STATUS, context) | !status::FEATURES_OK),
            None => wanted,
        };
        self.given.1 = taken;
        self.copy_configuration(context);
        taken
    }

    fn needs_reset(&self, context: &dyn VirtioContext) -> bool {
        self.word(register::STATUS, context) & status::NEEDS_RESET != 0
    }

    fn create_queue(
        &mut self,
        setup: QueueSetup,
        context: &dyn VirtioContext,
    ) -> Result<Queue, QueueError> {
        let number = setup.number;
        let entries = self.max_entries(number);
        let memory = context.memory();
        let method = Method {
            fast: self.config.fast,
            event_indices: setup.features & EVENT_INDEX != 0,
            patience: self.config.patience,
        };
        let checked = setup.layout.checked(entries.min(MAX_ENTRIES), memory)?;
        let spare = self.spare.get_mut(number).and_then(Option::take);
        let mut device = spare.ok_or(QueueError::BadQueue)?;
        if !device.is_in_use() {
            device.begin(entries, memory.host);
            self.set_up_queue(number, &device, context);
        }
        self.in_use = self.in_use.max(number + 1);
        Ok(Queue::new(checked, device, method, memory))
    }

    fn release_queue(&mut self, number: usize, queue: Queue) {
        if let Some(spare) = self.spare.get_mut(number) {
            spare.insert(queue.into_device_queue()).end();
        }
    }

    fn stop_queue(
        &mut self,
        number: usize,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        self.stop(number, queues, context)
    }

    #[inline]
    fn notify(
        &mut self,
        number: usize,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        match self.stopping.is_resetting() {
            true => Ok(Progress::default()),
            false => self.notified(number, queues, context),
        }
    }

    fn poll(
        &mut self,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        if self.stopping.is_resetting() {
            return Ok(Progress::default());
        }
        let (found, interrupt) = self.serve_ended(queues, context)?;
        let mut progress = Progress {
            interrupt,
            ..Progress::default()
        };
        if !found && let Some(reasons) = self.interrupt_reasons(context) {
            progress.configuration_changed = reasons.configuration_changed;
            progress.interrupt |= self.serve_watched(queues, context)?;
        }
        Ok(progress)
    }

    fn poll_idle(&mut self, context: &dyn VirtioContext) -> Progress {
        self.interrupt_reasons(context).unwrap_or_default()
    }

    fn timer_expired(
        &mut self,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        // Another poll may have come before.
        let is_due = self.due.is_some_and(|due| due <= context.time());
        let mut progress = Progress::default();
        if is_due && !self.stopping.is_resetting() {
            progress.interrupt = self.serve_watched(queues, context)?;
        }
        Ok(progress)
    }

    fn for_each_in_flight(
        &self,
        queues: &Queues<Queue>,
        context: &dyn VirtioContext,
        visit: &mut dyn FnMut(HostRegion),
    ) {
        let queues = queues.iter().flatten();
        queues.for_each(|queue| queue.for_each_in_flight(context.memory().host, visit));
    }

    /// The device says itself when its reset is done (§4.2.2.1). Until then it may still write to buffers.
    fn reset(&mut self, context: &dyn VirtioContext) -> Result<(), WouldBlock> {
        self.set_word(register::STATUS, 0, context);
        if self.word(register::STATUS, context) != 0 {
            return Err(WouldBlock);
        }
        self.given = (0, 0);
        for spare in self.spare.iter_mut().flatten() {
            spare.end();
        }
        self.stopping = Stopping::default();
        (self.in_use, self.due) = (0, None);
        self.copy_configuration(context);
        Ok(())
    }
}
