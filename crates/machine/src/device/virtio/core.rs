//! State of a virtio device that does not depend on its transport: status, features and virtqueues (virtio 1.2, chapters 2 and 3).

use riscv::virtio::status::{ACKNOWLEDGE, DRIVER, DRIVER_OK, FAILED, FEATURES_OK, NEEDS_RESET};
use serde::{Deserialize, Serialize};

use super::VirtioDevice;
use super::model::{ACCESS_PLATFORM, EVENT_INDEX, INDIRECT_DESCRIPTORS, Io, Model, VERSION_1};
use super::queue::{Broken, Queue};
use crate::device::{Context, Cycles};

/// The bits that a driver writes; the others are the device's or reserved.
const DRIVER_STATUS: u32 = ACKNOWLEDGE | DRIVER | DRIVER_OK | FEATURES_OK | FAILED;

/// Interrupts that a device wants to raise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    /// Queues whose used rings have news for the driver.
    pub queues: Vec<u16>,
    /// True if the device needs a reset, which is a change of its configuration.
    pub configuration: bool,
}

/// A device and its driver's choices.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Core {
    device: Option<VirtioDevice>,
    access_platform: bool,
    /// Features that the driver has chosen.
    pub driver_features: u64,
    queues: Vec<Queue>,
    status: u32,
    /// Queue interrupts for later.
    late: Vec<(Cycles, u16)>,
}

impl Core {
    /// A device after reset. With `access_platform` the driver is to use the platform's DMA addresses.
    #[must_use]
    pub fn new(device: VirtioDevice, access_platform: bool) -> Self {
        Self {
            queues: new_queues(device.model()),
            device: Some(device),
            access_platform,
            ..Self::default()
        }
    }

    pub const fn device(&self) -> Option<&VirtioDevice> {
        self.device.as_ref()
    }

    pub const fn device_mut(&mut self) -> Option<&mut VirtioDevice> {
        self.device.as_mut()
    }

    pub const fn status(&self) -> u32 {
        self.status
    }

    /// Tests whether the driver has chosen its features.
    pub const fn has_features(&self) -> bool {
        self.status & FEATURES_OK != 0
    }

    /// Tests whether the device waits for a reset.
    pub const fn needs_reset(&self) -> bool {
        self.status & NEEDS_RESET != 0
    }

    /// Features that the device offers.
    pub fn features(&self) -> u64 {
        let Some(device) = &self.device else { return 0 };
        let platform = if self.access_platform {
            ACCESS_PLATFORM
        } else {
            0
        };
        VERSION_1 | INDIRECT_DESCRIPTORS | EVENT_INDEX | platform | device.model().features()
    }

    pub const fn is_live(&self) -> bool {
        self.status & (FEATURES_OK | DRIVER_OK | NEEDS_RESET) == FEATURES_OK | DRIVER_OK
    }

    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    pub fn queue_mut(&mut self, queue: usize) -> Option<&mut Queue> {
        self.queues.get_mut(queue)
    }

    pub fn queue(&self, queue: usize) -> Option<&Queue> {
        self.queues.get(queue)
    }

    /// The driver broke the rules: the device stops until it is reset (§2.1.1).
    fn fail(&mut self, signals: &mut Signals) {
        self.status |= NEEDS_RESET;
        signals.configuration |= self.status & DRIVER_OK != 0;
    }

    /// Lets the device work if it is live.
    fn work(
        &mut self,
        context: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Model, &mut Io<'_, '_>) -> Result<(), Broken>,
    ) -> Signals {
        let mut signals = Signals::default();
        if !self.is_live() {
            return signals;
        }
        let Some(device) = &mut self.device else {
            return signals;
        };
        let mut io = Io {
            queues: &mut self.queues,
            context,
            features: self.driver_features,
            raised: Vec::new(),
            late: &mut self.late,
        };
        let result = act(device.model_mut(), &mut io);
        signals.queues = io.raised;
        if result.is_err() {
            self.fail(&mut signals);
        }
        signals
    }

    /// The driver has put chains in a queue.
    pub fn notify(&mut self, queue: u16, context: &mut Context<'_>) -> Signals {
        if usize::from(queue) < self.queues.len() {
            return self.work(context, |model, io| model.notify(queue, io));
        }
        Signals::default()
    }

    /// The driver writes its status; 0 is for [`Core::reset`].
    pub fn set_status(&mut self, status: u32, context: &mut Context<'_>) -> Signals {
        let was_live = self.is_live();
        let offered = self.features();
        let acceptable =
            self.driver_features & !offered == 0 && self.driver_features & VERSION_1 != 0;
        // The device keeps FEATURES_OK clear if it cannot work with the driver's choice.
        let refused = if acceptable { 0 } else { FEATURES_OK };
        self.status = (status & DRIVER_STATUS & !refused) | (self.status & NEEDS_RESET);
        let mut all = Signals::default();
        if !was_live && self.is_live() {
            // Chains may wait already.
            for queue in (0..).take(self.queues.len()) {
                let signals = self.notify(queue, context);
                all.queues.extend(signals.queues);
                all.configuration |= signals.configuration;
            }
        }
        all
    }

    pub fn reset(&mut self) {
        let (device, access_platform) = (self.device.take(), self.access_platform);
        *self = Self {
            access_platform,
            device,
            ..Self::default()
        };
        if let Some(device) = &mut self.device {
            device.model_mut().reset();
            self.queues = new_queues(device.model());
        }
    }

    /// Makes a queue ready, or takes it out of use.
    pub fn set_ready(&mut self, queue: usize, ready: bool, context: &Context<'_>) -> Signals {
        let mut signals = Signals::default();
        let event_index = self.driver_features & EVENT_INDEX != 0;
        let Some(queue) = self.queues.get_mut(queue) else {
            return signals;
        };
        if !ready {
            queue.retire();
        } else if queue.make_ready(event_index, context.memory).is_err() {
            self.fail(&mut signals);
        }
        signals
    }

    /// Reads the configuration space of the device; what lies behind its fields reads as zero.
    pub fn read_configuration(&self, offset: u64, size: u8) -> u64 {
        let bytes = self
            .device
            .as_ref()
            .map(|device| device.model().configuration());
        let byte = |index: u64| {
            let at = usize::try_from(offset.checked_add(index)?).ok()?;
            bytes.as_ref()?.get(at).copied()
        };
        (0..u64::from(size)).fold(0, |value, index| {
            value | u64::from(byte(index).unwrap_or(0)) << (8 * index)
        })
    }

    pub fn write_configuration(&mut self, offset: u64, size: u8, value: u64) {
        if let Some(device) = &mut self.device {
            device.model_mut().configure(offset, size, value);
        }
    }

    /// Queues whose late interrupts have become due.
    pub fn take_due(&mut self, now: Cycles) -> Vec<u16> {
        let is_due = |&&(at, _): &&(Cycles, u16)| at <= now;
        let due = self.late.iter().filter(is_due).map(|&(_, queue)| queue);
        let due = due.collect();
        self.late.retain(|&(at, _)| at > now);
        due
    }

    /// Lets the device do what is due.
    pub fn tick(&mut self, context: &mut Context<'_>) -> Signals {
        self.work(context, |model, io| model.tick(io))
    }

    pub fn next_event(&self) -> Option<Cycles> {
        let device = self.device.as_ref().filter(|_| self.is_live());
        let own = device.and_then(|device| device.model().next_event());
        self.late.iter().map(|&(at, _)| at).chain(own).min()
    }
}

fn new_queues(model: &dyn Model) -> Vec<Queue> {
    model.queue_sizes().into_iter().map(Queue::new).collect()
}

/// The word of a 64-bit value that a selector names; there are but two.
pub(crate) fn half(value: u64, select: u32) -> u32 {
    match select {
        0 => value as u32,
        1 => (value >> 32) as u32,
        _ => 0,
    }
}

pub(crate) fn set_half(value: &mut u64, select: u32, word: u32) {
    match select {
        0 => *value = (*value & !0xffff_ffff) | u64::from(word),
        1 => *value = (*value & 0xffff_ffff) | u64::from(word) << 32,
        _ => {}
    }
}
