//! virtio over memory-mapped registers, version 2 (virtio 1.2, §4.2.2): the interface to a guest's driver of any device that the hypervisor mediates or
//! emulates.
//!
//! [`MmioTransport`] keeps the driver's settings, and a [`VirtioDevice`] is the backend, which serves the chains of the queues.

mod device;
mod page;

pub use self::device::{
    CONFIGURATION_BYTES, Ids, MAX_QUEUES, Progress, QueueSetup, Queues, SIZE, VirtioDevice,
};

use abi::monitor::ExitCause;
use riscv::virtio::mmio;

use crate::devices::trapped::{Access, DeviceContext, TrappedDevice, VirtioContext, WouldBlock};
use crate::devices::virtio::queue::chain::QueueError;
use crate::devices::virtio::queue::layout::QueueLayout;
use crate::devices::virtio::{
    CONFIGURATION_CHANGE, QUEUE_PARTS, USED_BUFFER, VERSION_1, register, status, with_high,
    with_low,
};
use crate::hart::decode::Width;
use crate::memory::address::HostRegion;
use crate::memory::owned::OwnedRegion;

/// The registers of a device.
#[derive(Debug)]
pub struct MmioTransport<D: VirtioDevice> {
    device: D,
    driver: Driver,
    queues: Queues<D::Queue>,
    /// Page that the guest reads in place of the registers, without an exit; memory of this device alone.
    page: Option<OwnedRegion>,
}

/// Settings of the driver.
#[derive(Debug, Default)]
struct Driver {
    device_features_select: u32,
    features_select: u32,
    features: u64,
    queue_select: u32,
    layouts: [QueueLayout; MAX_QUEUES],
    status: u32,
    /// Set while chains are left that were available when the driver became ready.
    begins: bool,
    interrupt_status: u32,
}

impl<D: VirtioDevice> MmioTransport<D> {
    /// Device in the state after power-on.
    #[must_use]
    pub fn new(device: D, page: Option<OwnedRegion>) -> Self {
        Self {
            device,
            driver: Driver::default(),
            queues: [const { None }; MAX_QUEUES],
            page,
        }
    }

    /// Number and entries of the selected queue, if there is one.
    fn selected(&self) -> Option<usize> {
        let number = usize::try_from(self.driver.queue_select).ok()?;
        (number < MAX_QUEUES && self.device.max_entries(number) > 0).then_some(number)
    }

    #[inline]
    const fn is_live(&self) -> bool {
        let up = status::DRIVER_OK | status::NEEDS_RESET;
        self.driver.status & up == status::DRIVER_OK
    }

    /// Notes the outcome of work on queues. Returns true if there is more.
    #[inline]
    fn settle(&mut self, progress: Result<Progress, QueueError>) -> bool {
        match progress {
            Ok(progress) => {
                if progress.interrupt {
                    self.driver.interrupt_status |= USED_BUFFER;
                }
                if progress.configuration_changed && self.driver.status & status::DRIVER_OK != 0 {
                    self.driver.interrupt_status |= CONFIGURATION_CHANGE;
                }
                progress.more
            }
            Err(_) => {
                self.fail();
                false
            }
        }
    }

    /// Marks the device as broken by its driver: it works no more until the driver resets it (§2.1.2).
    #[cold]
    fn fail(&mut self) {
        self.driver.status |= status::NEEDS_RESET;
        if self.driver.status & status::DRIVER_OK != 0 {
            self.driver.interrupt_status |= CONFIGURATION_CHANGE;
        }
    }

    /// Works on a queue. Returns true if there is more.
    #[inline]
    fn work(&mut self, number: usize, context: &dyn VirtioContext) -> bool {
        if !self.is_live() || !matches!(self.queues.get(number), Some(Some(_))) {
            return false;
        }
        let progress = self.device.notify(number, &mut self.queues, context);
        self.settle(progress)
    }

    /// Forgets the driver's settings and its queues, of a device that was reset.
    fn forget_driver(&mut self) {
        self.driver = Driver::default();
        for (number, queue) in self.queues.iter_mut().enumerate() {
            if let Some(queue) = queue.take() {
                self.device.release_queue(number, queue);
            }
        }
    }

    fn set_status(&mut self, value: u32, context: &dyn VirtioContext) -> Result<(), WouldBlock> {
        if value == 0 {
            // From here on nothing more is begun.
            self.driver.status = 0;
            self.device.reset(context)?;
            self.forget_driver();
            self.show_configuration(context);
            return Ok(());
        }
        let was_live = self.is_live();
        let mut wanted = value & !status::NEEDS_RESET;
        let chosen = self.driver.features;
        let negotiates =
            wanted & status::FEATURES_OK != 0 && self.driver.status & status::FEATURES_OK == 0;
        if negotiates && (chosen & !self.device.features() != 0 || chosen & VERSION_1 == 0) {
            wanted &= !status::FEATURES_OK;
        } else {
            let features = negotiates.then_some(chosen);
            wanted = self.device.set_status(wanted, features, context);
            // Fields may depend on the negotiated features.
            self.show_configuration(context);
        }
        self.driver.status = wanted | self.driver.status & status::NEEDS_RESET;
        if self.is_live() && (!was_live || self.driver.begins) {
            // A driver may have made chains available before, without a notification (§3.1.1). The store is repeated for the rest.
            let mut more = false;
            for number in 0..MAX_QUEUES {
                more |= self.work(number, context);
            }
            self.driver.begins = more && self.is_live();
        }
        match self.driver.begins {
            true => Err(WouldBlock),
            false => Ok(()),
        }
    }

    fn set_ready(&mut self, ready: bool, context: &dyn VirtioContext) -> Result<(), WouldBlock> {
        let Some(number) = self.selected() else {
            return Ok(());
        };
        let (Some(layout), Some(queue)) = (
            self.driver.layouts.get(number).copied(),
            self.queues.get_mut(number),
        ) else {
            return Ok(());
        };
        match (ready, queue.is_some()) {
            (true, false) => {
                let setup = QueueSetup {
                    number,
                    layout,
                    features: self.driver.features,
                };
                match self.device.create_queue(setup, context) {
                    Ok(created) => *queue = Some(created),
                    Err(_) => self.fail(),
                }
            }
            (false, true) => {
                let progress = self.device.stop_queue(number, &mut self.queues, context);
                let failed = progress.is_err();
                if self.settle(progress) {
                    return Err(WouldBlock);
                }
                if let Some(queue) = self.queues.get_mut(number).filter(|_| !failed) {
                    *queue = None;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets one half of a queue's address.
    fn set_part(&mut self, register: u64, value: u32) {
        let layout = self.selected();
        let Some(layout) = layout.and_then(|number| self.driver.layouts.get_mut(number)) else {
            return;
        };
        for (low, part) in QUEUE_PARTS.into_iter().zip(&mut layout.parts) {
            if register == low {
                *part = with_low(*part, value);
            } else if register == low + 4 {
                *part = with_high(*part, value);
            }
        }
    }

    #[inline]
    fn load_word(&self, register: u64, context: &dyn VirtioContext) -> u32 {
        let driver = &self.driver;
        match register {
            register::MAGIC => mmio::MAGIC,
            register::VERSION => mmio::VERSION,
            register::DEVICE_ID => self.device.ids().device,
            register::VENDOR_ID => self.device.ids().vendor,
            register::DEVICE_FEATURES => match driver.device_features_select {
                0 => self.device.features() as u32,
                1 => (self.device.features() >> 32) as u32,
                _ => 0,
            },
            register::QUEUE_SIZE_MAX => {
                let number = self.selected();
                number.map_or(0, |number| self.device.max_entries(number).into())
            }
            register::QUEUE_READY => {
                let queue = self.selected().and_then(|number| self.queues.get(number));
                queue.is_some_and(Option::is_some).into()
            }
            register::INTERRUPT_STATUS => driver.interrupt_status,
            register::STATUS => match self.device.needs_reset(context) {
                true => driver.status | status::NEEDS_RESET,
                false => driver.status,
            },
            register::CONFIGURATION_GENERATION => self.device.generation(),
            // No region is shared.
            _ if register::SHARED_MEMORY.contains(&register) => u32::MAX,
            _ => 0,
        }
    }

    fn store_word(
        &mut self,
        register: u64,
        value: u32,
        context: &dyn VirtioContext,
    ) -> Result<(), WouldBlock> {
        // Notifications and interrupts come first. They change nothing else that a guest reads, unless its driver broke the rules.
        match register {
            register::QUEUE_NOTIFY => {
                let more = self.work(value as usize, context);
                self.show_progress(context);
                return match more {
                    true => Err(WouldBlock),
                    false => Ok(()),
                };
            }
            register::INTERRUPT_ACKNOWLEDGE => {
                self.driver.interrupt_status &= !value;
                self.show_interrupts(context);
                return Ok(());
            }
            _ => {}
        }
        let taken = self.set_up(register, value, context);
        self.show(context);
        taken
    }

    /// Handles a store to a register of the device's set-up.
    #[cold]
    #[inline(never)]
    fn set_up(
        &mut self,
        register: u64,
        value: u32,
        context: &dyn VirtioContext,
    ) -> Result<(), WouldBlock> {
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
                if let Some(layout) = number.and_then(|number| self.driver.layouts.get_mut(number))
                {
                    layout.size = value;
                }
            }
            register::QUEUE_READY => return self.set_ready(value & 1 != 0, context),
            register::STATUS => return self.set_status(value, context),
            _ => self.set_part(register, value),
        }
        Ok(())
    }

    /// Value of an aligned access to the configuration space, at an offset in it.
    fn load_configuration(&self, offset: u64, width: Width) -> u64 {
        let bytes = width.bytes();
        if !offset.is_multiple_of(bytes) || offset >= CONFIGURATION_BYTES {
            return 0;
        }
        let byte = |index| u64::from(self.device.configuration(offset + index)) << (8 * index);
        (0..bytes).map(byte).fold(0, |all, byte| all | byte)
    }
}

impl<D: VirtioDevice> TrappedDevice for MmioTransport<D> {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioVirtio
    }

    fn load(&mut self, access: Access, context: &dyn DeviceContext) -> u64 {
        if let Some(offset) = access.offset.checked_sub(register::CONFIGURATION) {
            return self.load_configuration(offset, access.width);
        }
        let (Some(context), Width::Word) = (context.virtio(), access.width) else {
            return 0;
        };
        if access.offset == register::CONFIGURATION_GENERATION
            && self.device.refresh_configuration(context)
        {
            self.show_configuration(context);
        }
        self.load_word(access.offset, context).into()
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
        if let Some(offset) = access.offset.checked_sub(register::CONFIGURATION) {
            let access = Access { offset, ..access };
            if self.device.store_configuration(access, value, context) {
                self.show_configuration(context);
                self.show(context);
            }
            return Ok(());
        }
        match access.width {
            Width::Word => self.store_word(access.offset, value as u32, context),
            _ => Ok(()),
        }
    }

    fn poll(&mut self, context: &dyn DeviceContext) {
        let Some(context) = context.virtio() else {
            return;
        };
        let progress = match self.is_live() {
            true => self.device.poll(&mut self.queues, context),
            false => Ok(self.device.poll_idle(context)),
        };
        let changed = progress.is_ok_and(|progress| progress.configuration_changed);
        self.settle(progress);
        match changed {
            false => self.show_progress(context),
            true => {
                self.show_configuration(context);
                self.show(context);
            }
        }
    }

    fn timer_expired(&mut self, context: &dyn DeviceContext) {
        if let Some(context) = context.virtio()
            && self.is_live()
        {
            let progress = self.device.timer_expired(&mut self.queues, context);
            self.settle(progress);
            self.show_progress(context);
        }
    }

    fn irq_level(&self) -> bool {
        self.driver.interrupt_status != 0
    }

    fn reset(&mut self, context: &dyn DeviceContext) {
        let context = context.virtio();
        if let Some(context) = context {
            // `is_quiescent` checks for operations in flight.
            let _ = self.device.reset(context);
        }
        self.forget_driver();
        if let Some(context) = context {
            self.device.power_on(context);
            self.show_first(context);
        }
    }

    fn for_each_in_flight(&self, context: &dyn DeviceContext, visit: &mut dyn FnMut(HostRegion)) {
        if let Some(context) = context.virtio() {
            self.device.for_each_in_flight(&self.queues, context, visit);
        }
    }

    fn is_quiescent(&mut self, context: &dyn DeviceContext) -> bool {
        self.driver.status = 0;
        let context = context.virtio();
        context.is_none_or(|context| self.device.reset(context).is_ok())
    }
}
