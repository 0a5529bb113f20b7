//! A virtio device of the board, simulated for one VM: general I/O simulation (Umeno and Tanaka 1987, §2).
//!
//! The guest's registers trap, and its queues are never the device's. At a notification each chain that the guest has made available is
//! read once, its buffers are translated piece by piece, and the chain that the device works on is built in the hypervisor's memory
//! ([`shadow`]). The device interrupts the hypervisor, which returns what has ended to the guest's queue and interrupts the guest.
//! So no address that a guest writes reaches a device: a guest whose devices are all simulated has only its own memory, without an
//! IOMMU.
//!
//! Registers: virtio 1.2, §4.2.2. What concerns neither queues nor interrupts (the device's kind, its features, its configuration)
//! is the device's own. Features that would change how queues work are not offered.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod chain;
mod configuration;
pub mod fast;
pub mod pace;
mod page;
pub mod place;
pub mod queue;
mod refresh;
pub mod rings;
mod scattered;
mod serve;
pub mod shadow;
#[cfg(test)]
pub mod tests;

use abi::monitor::ExitCause;

pub use self::shadow::AREA;

use self::configuration::Configuration;
use self::place::Place;
use self::queue::{How, Queue};
use self::shadow::MOST_ENTRIES;
use crate::devices::trapped::{Access, NotNow, Outside, Reach, Trapped};
use crate::devices::virtio::{
    ACCESS_PLATFORM, CONFIGURATION_CHANGE, EVENT_INDICES, INDIRECT_TABLES, VERSION_1, register,
    status, with_high, with_low,
};
use crate::devices::wires::SourceNumber;
use crate::hart::decode::Width;
use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::owned::OwnedRegion;

/// Queues that a simulated device can have.
pub const QUEUES: usize = 4;
/// Bytes of memory that a simulated device needs: for its queues, and for the page of its registers.
pub const QUEUE_BYTES: u64 = QUEUES as u64 * AREA;
pub const BYTES: u64 = QUEUE_BYTES + PAGE_SIZE;

/// Of the features that concern queues and transports (24 to 49, §6) those that a guest may have.
const QUEUE_FEATURES: u64 = ((1 << 50) - 1) & !((1 << 24) - 1);
const OFFERED_QUEUE_FEATURES: u64 = INDIRECT_TABLES | EVENT_INDICES | VERSION_1;
/// More queues than one, of a block device (§5.2.3) and of a network device (§5.1.3; and what depends on it).
const BLOCK_QUEUES: (u64, u64) = (2, 1 << 12);
const NETWORK_QUEUES: (u64, u64) = (1, 1 << 22 | 1 << 57 | 1 << 60);

/// A device of the board that is simulated for a VM: what the hypervisor needs for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// The device's registers.
    pub registers: HostPhysical,
    /// Its source at the board's APLIC, which the hypervisor has.
    pub source: SourceNumber,
    /// Areas for the device's side of the queues, [`QUEUES`] of [`AREA`] bytes each: memory that nobody else has.
    pub areas: OwnedRegion,
    /// Whether by fast I/O simulation.
    pub fast: bool,
    /// A page that the guest reads in place of the registers, without leaving; memory that nobody else has.
    pub page: Option<OwnedRegion>,
    /// The longest time between two looks at a queue that nobody tells of, in ticks; 0 where there can be none.
    pub patience: u64,
}

/// A device of the board for one VM, with everything that the guest has set.
#[derive(Debug)]
pub struct Simulated {
    means: Means,
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u32,
    places: [Place; QUEUES],
    queues: [Option<Queue>; QUEUES],
    /// No queue from here on has been in use.
    in_use: usize,
    status: u32,
    interrupt_status: u32,
    configuration: Configuration,
    /// When a queue is to be looked at again that nobody tells of, if there is one.
    due: Option<u64>,
}

impl Simulated {
    /// The device as after power-on.
    #[must_use]
    pub fn new(means: Means) -> Self {
        Self {
            means,
            device_features_select: 0,
            driver_features_select: 0,
            driver_features: 0,
            queue_select: 0,
            places: [Place::default(); QUEUES],
            queues: [const { None }; QUEUES],
            in_use: 0,
            status: 0,
            interrupt_status: 0,
            configuration: Configuration::new(),
            due: None,
        }
    }

    fn word(&self, register: u64, reach: &dyn Reach) -> u32 {
        let at = HostPhysical::new(self.means.registers.raw().wrapping_add(register));
        reach.device_load(at, Width::Word).unwrap_or(0) as u32
    }

    fn set_word(&self, register: u64, value: u32, reach: &dyn Reach) {
        let at = HostPhysical::new(self.means.registers.raw().wrapping_add(register));
        reach.device_store(at, Width::Word, value.into());
    }

    /// What the device itself offers.
    fn device_features(&self, reach: &dyn Reach) -> u64 {
        let half = |word: u32| {
            self.set_word(register::DEVICE_FEATURES_SELECT, word, reach);
            u64::from(self.word(register::DEVICE_FEATURES, reach))
        };
        half(0) | half(1) << 32
    }

    /// What the guest is offered.
    fn features(&self, reach: &dyn Reach) -> u64 {
        let kind = u64::from(self.word(register::DEVICE_ID, reach));
        let withheld = [BLOCK_QUEUES, NETWORK_QUEUES]
            .into_iter()
            .filter(|(of, _)| *of == kind)
            .fold(QUEUE_FEATURES, |all, (_, features)| all | features);
        self.device_features(reach) & !withheld | OFFERED_QUEUE_FEATURES
    }

    /// Entries that the selected queue can have; 0 where there is none.
    fn entries(&self, reach: &dyn Reach) -> u16 {
        if self.queue_select as usize >= QUEUES {
            return 0;
        }
        self.set_word(register::QUEUE_SELECT, self.queue_select, reach);
        let most = self.word(register::QUEUE_SIZE_MOST, reach);
        match most.min(MOST_ENTRIES.into()) {
            0 => 0,
            most => 1 << most.ilog2(),
        }
    }

    fn is_live(&self) -> bool {
        self.status & (status::DRIVER_OK | status::NEEDS_RESET) == status::DRIVER_OK
    }

    /// The driver broke the rules: nothing is done for it until it resets the device (§2.1.2).
    #[cold]
    fn fail(&mut self, reach: &dyn Reach) {
        self.status |= status::NEEDS_RESET;
        if self.status & status::DRIVER_OK != 0 {
            self.interrupt_status |= CONFIGURATION_CHANGE;
        }
        self.show(reach);
    }

    /// The driver's write of the status.
    ///
    /// # Errors
    /// [`NotNow`], as long as the device has not done the reset that it was asked for (§4.2.2.1).
    fn set_status(&mut self, value: u32, reach: &dyn Reach) -> Result<(), NotNow> {
        if value == 0 {
            self.status = 0;
            self.set_word(register::STATUS, 0, reach);
            if self.word(register::STATUS, reach) != 0 {
                return Err(NotNow);
            }
            let generation = self.configuration.generation;
            *self = Self::new(self.means);
            self.configuration.generation = generation;
            self.copy_configuration(reach);
            self.show_configuration(reach);
            return Ok(());
        }
        let was_live = self.is_live();
        let mut wanted = value & !status::NEEDS_RESET;
        if wanted & status::FEATURES_OK != 0 && self.status & status::FEATURES_OK == 0 {
            if self.agree(reach) {
                self.set_word(register::STATUS, wanted, reach);
                wanted &= self.word(register::STATUS, reach) | !status::FEATURES_OK;
            } else {
                wanted &= !status::FEATURES_OK;
            }
        } else {
            self.set_word(register::STATUS, wanted, reach);
        }
        self.status = wanted | self.status & status::NEEDS_RESET;
        // Fields may depend on what was agreed on.
        self.copy_configuration(reach);
        self.show_configuration(reach);
        if !was_live && self.is_live() {
            for number in 0..QUEUES {
                self.pass(number, reach);
            }
        }
        Ok(())
    }

    /// Gives the guest's choice of features to the device, if it is one that can be.
    fn agree(&self, reach: &dyn Reach) -> bool {
        let chosen = self.driver_features;
        if chosen & !self.features(reach) != 0 || chosen & VERSION_1 == 0 {
            return false;
        }
        // The device's own addresses are the host's, whatever it calls them. Indirect tables are resolved before it sees a chain, and it
        // is told of each chain.
        let own = self.device_features(reach) & ACCESS_PLATFORM;
        let given = chosen & !(INDIRECT_TABLES | EVENT_INDICES) | own;
        for (word, half) in [(0, given as u32), (1, (given >> 32) as u32)] {
            self.set_word(register::DRIVER_FEATURES_SELECT, word, reach);
            self.set_word(register::DRIVER_FEATURES, half, reach);
        }
        true
    }

    fn set_ready(&mut self, ready: bool, reach: &dyn Reach) {
        let number = self.queue_select as usize;
        let entries = self.entries(reach);
        let (Some(place), Some(queue)) = (
            self.places.get(number).copied(),
            self.queues.get_mut(number),
        ) else {
            return;
        };
        if entries == 0 || ready == queue.is_some() {
            return;
        }
        if !ready {
            // A queue with chains under way goes by a reset of the device alone: the device may still write to their buffers.
            if queue.as_ref().is_some_and(Queue::is_at_work) {
                return;
            }
            *queue = None;
            self.set_word(register::QUEUE_READY, 0, reach);
            return;
        }
        let area = self.means.areas.skip(AREA * number as u64).take(AREA);
        let how = How {
            fast: self.means.fast,
            event_indices: self.driver_features & EVENT_INDICES != 0,
            patience: self.means.patience,
        };
        match Queue::new(place, area, entries, how, reach.memory()) {
            Ok(new) => {
                let parts = new.parts();
                *queue = Some(new);
                self.in_use = self.in_use.max(number + 1);
                self.set_word(register::QUEUE_SIZE, entries.into(), reach);
                for (register, part) in register::QUEUE_PARTS.into_iter().zip(parts) {
                    self.set_word(register, part.raw() as u32, reach);
                    self.set_word(register + 4, (part.raw() >> 32) as u32, reach);
                }
                self.set_word(register::QUEUE_READY, 1, reach);
            }
            Err(_) => self.fail(reach),
        }
    }

    /// Sets a half of what a guest writes in two.
    fn set_part(&mut self, register: u64, value: u32) {
        let Some(place) = self.places.get_mut(self.queue_select as usize) else {
            return;
        };
        for (low, part) in register::QUEUE_PARTS.into_iter().zip(&mut place.parts) {
            if register == low {
                *part = with_low(*part, value);
            } else if register == low + 4 {
                *part = with_high(*part, value);
            }
        }
    }

    fn load_word(&self, register: u64, reach: &dyn Reach) -> u32 {
        match register {
            register::MAGIC | register::DEVICE_ID | register::VENDOR_ID => {
                self.word(register, reach)
            }
            register::VERSION => 2,
            register::DEVICE_FEATURES => match self.device_features_select {
                0 => self.features(reach) as u32,
                1 => (self.features(reach) >> 32) as u32,
                _ => 0,
            },
            register::QUEUE_SIZE_MOST => self.entries(reach).into(),
            register::QUEUE_READY => {
                let queue = self.queues.get(self.queue_select as usize);
                queue.is_some_and(Option::is_some).into()
            }
            register::INTERRUPT_STATUS => self.interrupt_status,
            register::STATUS => {
                let needs_reset = self.word(register::STATUS, reach) & status::NEEDS_RESET;
                self.status | needs_reset
            }
            register::CONFIGURATION_GENERATION => self.configuration.generation,
            // No region is shared (§4.2.2).
            _ if register::SHARED_MEMORY.contains(&register) => u32::MAX,
            _ => 0,
        }
    }

    fn store_word(&mut self, register: u64, value: u32, reach: &dyn Reach) -> Result<(), NotNow> {
        // What every operation needs comes first, and changes nothing else that a guest reads.
        match register {
            register::QUEUE_NOTIFY => {
                return match self.notified(value as usize, reach) {
                    true => Err(NotNow),
                    false => Ok(()),
                };
            }
            register::INTERRUPT_ACKNOWLEDGE => {
                self.interrupt_status &= !value;
                self.show_interrupts(reach);
                return Ok(());
            }
            _ => {}
        }
        let taken = self.set_up(register, value, reach);
        self.show(reach);
        taken
    }

    /// A store to a register by which a driver sets its device up.
    #[cold]
    #[inline(never)]
    fn set_up(&mut self, register: u64, value: u32, reach: &dyn Reach) -> Result<(), NotNow> {
        match register {
            register::DEVICE_FEATURES_SELECT => self.device_features_select = value,
            register::DRIVER_FEATURES_SELECT => self.driver_features_select = value,
            register::DRIVER_FEATURES if self.status & status::FEATURES_OK == 0 => {
                let chosen = self.driver_features;
                match self.driver_features_select {
                    0 => self.driver_features = with_low(chosen, value),
                    1 => self.driver_features = with_high(chosen, value),
                    _ => {}
                }
            }
            register::QUEUE_SELECT => self.queue_select = value,
            register::QUEUE_SIZE => {
                if let Some(place) = self.places.get_mut(self.queue_select as usize) {
                    place.size = value;
                }
            }
            register::QUEUE_READY => self.set_ready(value & 1 != 0, reach),
            register::STATUS => return self.set_status(value, reach),
            _ => self.set_part(register, value),
        }
        Ok(())
    }
}

impl Trapped for Simulated {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioVirtio
    }

    fn load(&mut self, access: Access, outside: &dyn Outside) -> u64 {
        let Some(reach) = outside.reach() else {
            return 0;
        };
        if access.offset < register::CONFIGURATION {
            return match access.width {
                Width::Word if access.offset == register::CONFIGURATION_GENERATION => {
                    self.load_generation(reach).into()
                }
                Width::Word => self.load_word(access.offset, reach).into(),
                _ => 0,
            };
        }
        self.configuration.load(access)
    }

    fn store(&mut self, access: Access, value: u64, outside: &dyn Outside) -> Result<(), NotNow> {
        let Some(reach) = outside.reach() else {
            return Ok(());
        };
        if access.offset < register::CONFIGURATION {
            return match access.width {
                Width::Word => self.store_word(access.offset, value as u32, reach),
                _ => Ok(()),
            };
        }
        self.store_configuration(access, value, reach);
        Ok(())
    }

    fn look(&mut self, outside: &dyn Outside) {
        let Some(reach) = outside.reach() else { return };
        if self.is_live() && self.serve_ended(reach) {
            self.show_interrupts(reach);
        } else {
            self.look_for_reason(reach);
        }
    }

    fn time_has_come(&mut self, outside: &dyn Outside) {
        let Some(reach) = outside.reach() else { return };
        // Another look may have come before.
        if self.due.is_some_and(|due| due <= reach.time()) {
            self.serve_watched(reach);
        }
    }

    fn wire(&self) -> bool {
        self.interrupt_status != 0
    }

    fn under_way(&self, outside: &dyn Outside, tell: &mut dyn FnMut(HostRegion)) {
        if let Some(reach) = outside.reach() {
            let queues = self.queues.iter().flatten();
            queues.for_each(|queue| queue.reach(reach.memory().host, tell));
        }
    }

    fn reset(&mut self, outside: &dyn Outside) {
        if let Some(reach) = outside.reach() {
            // The device is asked once; what it still does then, it does in memory that is the guest's or its own.
            let _ = self.set_status(0, reach);
            *self = Self::new(self.means);
            self.show_first(reach);
        }
    }
}

impl Simulated {
    /// The device has interrupted, and perhaps not because operations have ended.
    #[inline(never)]
    fn look_for_reason(&mut self, reach: &dyn Reach) {
        let why = self.word(register::INTERRUPT_STATUS, reach);
        if why == 0 {
            return;
        }
        self.set_word(register::INTERRUPT_ACKNOWLEDGE, why, reach);
        // A device that needs a reset may keep its wire high with nothing to say: then nothing is asked for again, or it would
        // interrupt for ever. A wire that falls and rises sends by itself (AIA §4.7).
        reach.served(self.means.source);
        if why & CONFIGURATION_CHANGE != 0 {
            self.copy_configuration(reach);
            self.show_configuration(reach);
            self.show(reach);
            if self.status & status::DRIVER_OK != 0 {
                self.interrupt_status |= CONFIGURATION_CHANGE;
            }
        }
        self.serve_watched(reach);
    }
}
