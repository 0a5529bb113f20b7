//! The registers and queues that a guest sees of a virtio device which the hypervisor makes (virtio 1.2, §4.2.2).

use core::fmt::Debug;

use abi::monitor::ExitCause;

use super::queue::{GuestQueue, MOST_ENTRIES};
use crate::devices::simulated::chain::Wrong;
use crate::devices::simulated::place::Place;
use crate::devices::trapped::{Access, NotNow, Outside, Reach, Trapped};
use crate::devices::virtio::{
    CONFIGURATION_CHANGE, DeviceKind, EVENT_INDICES, INDIRECT_TABLES, USED_BUFFER, VERSION_1,
    register, status, with_high, with_low,
};
use crate::hart::decode::Width;
use crate::memory::address::HostRegion;
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;

/// Queues that such a device can have.
pub const QUEUES: usize = 3;
/// Bytes of registers and configuration.
pub const SIZE: u64 = 0x200;
/// "virt", in the byte order of the registers (§4.2.2).
const MAGIC: u64 = 0x7472_6976;
/// "PTTA": who made the device. Any value will do.
const VENDOR: u64 = 0x4154_5450;

/// The queues of a device that the guest has made ready.
pub type Queues = [Option<GuestQueue>; QUEUES];

/// What came of working on queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    /// Whether the guest is to be interrupted.
    pub interrupt: bool,
    /// Whether there is more that could be done now. The guest's store is then done again, after others have had the hart.
    pub more: bool,
}

/// What a kind of device does.
pub trait Kind: Debug + Send {
    /// Which it is (§5).
    fn id(&self) -> DeviceKind;

    /// How many queues it has, [`QUEUES`] at most.
    fn queues(&self) -> usize;

    /// What it offers, besides the features of all.
    fn features(&self) -> u64;

    /// A byte of its configuration, which does not change. Behind its end there are zeros.
    fn configuration(&self, offset: u64) -> u8;

    /// The guest has notified it of a queue, or has just become ready with it. A bounded number of descriptors is read.
    ///
    /// # Errors
    /// [`Wrong`]: the driver broke the rules.
    fn work(
        &mut self,
        queue: usize,
        queues: &mut Queues,
        reach: &dyn Reach,
    ) -> Result<Worked, Wrong>;

    /// Something has come from outside that it may wait for. `more` has no meaning.
    ///
    /// # Errors
    /// [`Wrong`]: the driver broke the rules.
    fn look(&mut self, queues: &mut Queues, reach: &dyn Reach) -> Result<Worked, Wrong>;

    /// Tells of all that operations under way may still reach of the guest's memory.
    fn under_way(&self, reach: &dyn Reach, tell: &mut dyn FnMut(HostRegion)) {
        let _ = (reach, tell);
    }

    /// The driver resets the device. What was not begun is forgotten.
    ///
    /// # Errors
    /// [`NotNow`], as long as something is under way that reaches the guest's memory.
    fn stop(&mut self, reach: &dyn Reach) -> Result<(), NotNow>;
}

/// A device of some kind, with everything that the guest has set.
#[derive(Debug)]
pub struct Front<K> {
    kind: K,
    driver: Driver,
    queues: Queues,
    /// A page that the guest reads in place of the registers, without leaving; memory that nobody else has.
    page: Option<OwnedRegion>,
}

/// What a driver has set.
#[derive(Debug, Default)]
struct Driver {
    device_features_select: u32,
    features_select: u32,
    features: u64,
    queue_select: u32,
    places: [Place; QUEUES],
    status: u32,
    /// Whether not all is done yet of what was available when the driver became ready.
    begins: bool,
    interrupt_status: u32,
}

impl<K: Kind> Front<K> {
    /// The device as after power-on.
    #[must_use]
    pub fn new(kind: K, page: Option<OwnedRegion>) -> Self {
        Self {
            page,
            kind,
            driver: Driver::default(),
            queues: [const { None }; QUEUES],
        }
    }

    fn features(&self) -> u64 {
        self.kind.features() | VERSION_1 | INDIRECT_TABLES | EVENT_INDICES
    }

    /// The number of the selected queue, if there is one.
    fn selected(&self) -> Option<usize> {
        let number = usize::try_from(self.driver.queue_select).ok()?;
        (number < self.kind.queues().min(QUEUES)).then_some(number)
    }

    const fn is_live(&self) -> bool {
        let up = status::DRIVER_OK | status::NEEDS_RESET;
        self.driver.status & up == status::DRIVER_OK
    }

    /// What came of working on queues. Says whether there is more.
    fn settle(&mut self, worked: Result<Worked, Wrong>) -> bool {
        match worked {
            Ok(worked) => {
                if worked.interrupt {
                    self.driver.interrupt_status |= USED_BUFFER;
                }
                worked.more
            }
            // Nothing is done for the driver until it resets the device (§2.1.2).
            Err(_) => {
                self.driver.status |= status::NEEDS_RESET;
                if self.driver.status & status::DRIVER_OK != 0 {
                    self.driver.interrupt_status |= CONFIGURATION_CHANGE;
                }
                false
            }
        }
    }

    /// Works on a queue. Says whether there is more.
    fn work(&mut self, number: usize, reach: &dyn Reach) -> bool {
        if !self.is_live() || !matches!(self.queues.get(number), Some(Some(_))) {
            return false;
        }
        let worked = self.kind.work(number, &mut self.queues, reach);
        self.settle(worked)
    }

    fn set_status(&mut self, value: u32, reach: &dyn Reach) -> Result<(), NotNow> {
        if value == 0 {
            // From here on nothing more is begun.
            self.driver.status = 0;
            self.kind.stop(reach)?;
            self.driver = Driver::default();
            self.queues = [const { None }; QUEUES];
            return Ok(());
        }
        let was_live = self.is_live();
        let mut wanted = value & !status::NEEDS_RESET;
        if wanted & status::FEATURES_OK != 0 && self.driver.status & status::FEATURES_OK == 0 {
            let chosen = self.driver.features;
            if chosen & !self.features() != 0 || chosen & VERSION_1 == 0 {
                wanted &= !status::FEATURES_OK;
            }
        }
        self.driver.status = wanted | self.driver.status & status::NEEDS_RESET;
        if self.is_live() && (!was_live || self.driver.begins) {
            // A driver may have made chains available before, of which it tells nobody (§3.1.1). The store is done again for what is left.
            let mut more = false;
            for number in 0..QUEUES {
                more |= self.work(number, reach);
            }
            self.driver.begins = more && self.is_live();
        }
        match self.driver.begins {
            true => Err(NotNow),
            false => Ok(()),
        }
    }

    fn set_ready(&mut self, ready: bool, reach: &dyn Reach) {
        let Some(number) = self.selected() else {
            return;
        };
        let event_indices = self.driver.features & EVENT_INDICES != 0;
        let (Some(place), Some(queue)) = (
            self.driver.places.get(number).copied(),
            self.queues.get_mut(number),
        ) else {
            return;
        };
        // A queue goes by a reset of the device alone: chains of it may be under way.
        if !ready || queue.is_some() {
            return;
        }
        match GuestQueue::new(place, event_indices, reach.memory()) {
            Ok(new) => *queue = Some(new),
            Err(wrong) => {
                self.settle(Err(wrong));
            }
        }
    }

    fn set_part(&mut self, register: u64, value: u32) {
        let place = self.selected();
        let Some(place) = place.and_then(|number| self.driver.places.get_mut(number)) else {
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

    fn load_word(&self, register: u64) -> u64 {
        let driver = &self.driver;
        match register {
            register::MAGIC => MAGIC,
            register::VERSION => 2,
            register::DEVICE_ID => self.kind.id() as u64,
            register::VENDOR_ID => VENDOR,
            register::DEVICE_FEATURES => match driver.device_features_select {
                0 => self.features() & 0xffff_ffff,
                1 => self.features() >> 32,
                _ => 0,
            },
            register::QUEUE_SIZE_MOST if self.selected().is_some() => MOST_ENTRIES.into(),
            register::QUEUE_READY => {
                let queue = self.selected().and_then(|number| self.queues.get(number));
                queue.is_some_and(Option::is_some).into()
            }
            register::INTERRUPT_STATUS => driver.interrupt_status.into(),
            register::STATUS => driver.status.into(),
            // No region is shared.
            _ if register::SHARED_MEMORY.contains(&register) => u32::MAX.into(),
            _ => 0,
        }
    }

    fn store_word(&mut self, register: u64, value: u32, reach: &dyn Reach) -> Result<(), NotNow> {
        // What every operation needs comes first, and changes nothing else that a guest reads, unless its driver broke the rules.
        match register {
            register::QUEUE_NOTIFY => {
                let more = self.work(value as usize, reach);
                self.show_worked(reach);
                return match more {
                    true => Err(NotNow),
                    false => Ok(()),
                };
            }
            register::INTERRUPT_ACKNOWLEDGE => {
                self.driver.interrupt_status &= !value;
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
    #[inline(never)]
    fn set_up(&mut self, register: u64, value: u32, reach: &dyn Reach) -> Result<(), NotNow> {
        match register {
            register::DEVICE_FEATURES_SELECT => self.driver.device_features_select = value,
            register::DRIVER_FEATURES_SELECT => self.driver.features_select = value,
            register::DRIVER_FEATURES if self.driver.status & status::FEATURES_OK == 0 => {
                let chosen = self.driver.features;
                match self.driver.features_select {
                    0 => self.driver.features = with_low(chosen, value),
                    1 => self.driver.features = with_high(chosen, value),
                    _ => {}
                }
            }
            register::QUEUE_SELECT => self.driver.queue_select = value,
            register::QUEUE_SIZE => {
                let number = self.selected();
                if let Some(place) = number.and_then(|number| self.driver.places.get_mut(number)) {
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

/// The registers that a load shows something of, but for the interrupt status.
const SHOWN: [u64; 12] = [
    register::MAGIC,
    register::VERSION,
    register::DEVICE_ID,
    register::VENDOR_ID,
    register::DEVICE_FEATURES,
    register::QUEUE_SIZE_MOST,
    register::QUEUE_READY,
    register::STATUS,
    *register::SHARED_MEMORY.start(),
    *register::SHARED_MEMORY.start() + 4,
    *register::SHARED_MEMORY.start() + 8,
    *register::SHARED_MEMORY.end(),
];

impl<K: Kind> Front<K> {
    /// Shows everything, and nothing of what the page's memory held before.
    #[cold]
    fn show_first(&self, reach: &dyn Reach) {
        let Some(page) = self.page else { return };
        let host = reach.memory().host;
        host.zero(page);
        for offset in 0..SIZE - register::CONFIGURATION {
            let at = page.skip(register::CONFIGURATION + offset);
            host.set_byte(at, self.kind.configuration(offset));
        }
        self.show(reach);
    }

    /// Shows what the registers read as. The configuration of such a device stays as it is.
    #[cold]
    #[inline(never)]
    fn show(&self, reach: &dyn Reach) {
        for register in SHOWN {
            self.set(register, self.load_word(register) as u32, reach);
        }
        self.show_interrupts(reach);
    }

    /// Shows what work on the queues has changed.
    #[inline]
    fn show_worked(&self, reach: &dyn Reach) {
        match self.driver.status & status::NEEDS_RESET {
            0 => self.show_interrupts(reach),
            _ => self.show(reach),
        }
    }

    #[inline]
    fn show_interrupts(&self, reach: &dyn Reach) {
        self.set(
            register::INTERRUPT_STATUS,
            self.driver.interrupt_status,
            reach,
        );
    }

    /// Sets a word of the page.
    #[inline]
    fn set(&self, register: u64, word: u32, reach: &dyn Reach) {
        if let Some(page) = self.page {
            let at = page.skip(register);
            reach.memory().host.set_word(at, word.to_le());
        }
    }
}

impl<K: Kind> Trapped for Front<K> {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioVirtio
    }

    fn load(&mut self, access: Access, _: &dyn Outside) -> u64 {
        let Some(offset) = access.offset.checked_sub(register::CONFIGURATION) else {
            return match access.width {
                Width::Word => self.load_word(access.offset),
                _ => 0,
            };
        };
        let bytes = access.width.bytes();
        if !offset.is_multiple_of(bytes) {
            return 0;
        }
        let byte = |index| u64::from(self.kind.configuration(offset + index)) << (8 * index);
        (0..bytes).map(byte).fold(0, |all, byte| all | byte)
    }

    fn store(&mut self, access: Access, value: u64, outside: &dyn Outside) -> Result<(), NotNow> {
        match outside.reach() {
            Some(reach) if access.width == Width::Word => {
                self.store_word(access.offset, value as u32, reach)
            }
            _ => Ok(()),
        }
    }

    fn look(&mut self, outside: &dyn Outside) {
        if let Some(reach) = outside.reach()
            && self.is_live()
        {
            let worked = self.kind.look(&mut self.queues, reach);
            self.settle(worked);
            self.show_worked(reach);
        }
    }

    fn wire(&self) -> bool {
        self.driver.interrupt_status != 0
    }

    fn reset(&mut self, outside: &dyn Outside) {
        let reach = outside.reach();
        if let Some(reach) = reach {
            // What is still under way is asked for by `is_quiet`.
            let _ = self.kind.stop(reach);
        }
        self.driver = Driver::default();
        self.queues = [const { None }; QUEUES];
        if let Some(reach) = reach {
            self.show_first(reach);
        }
    }

    fn under_way(&self, outside: &dyn Outside, tell: &mut dyn FnMut(HostRegion)) {
        if let Some(reach) = outside.reach() {
            self.kind.under_way(reach, tell);
        }
    }

    fn is_quiet(&mut self, outside: &dyn Outside) -> bool {
        self.driver.status = 0;
        outside
            .reach()
            .is_none_or(|reach| self.kind.stop(reach).is_ok())
    }
}
